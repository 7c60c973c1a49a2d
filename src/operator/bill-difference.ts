/** A bill may differ by so many percent from what was counted before anybody is told. */
const DIFFERENCE_PERCENT = 2;

/** Whether what a provider billed is further off what was counted than that, of whichever is more; in micros. */
export function isFarOff(billedMicro: number, countedMicro: number): boolean {
  const apart = Math.abs(billedMicro - countedMicro);
  return apart * 100 > Math.max(billedMicro, countedMicro) * DIFFERENCE_PERCENT;
}
