const DIFFERENCE_PERCENT = 2;

/** Returns whether a bill differs too much from the count, relative to the larger one; in micro-credits. */
export function isFarOff(billedMicro: number, countedMicro: number): boolean {
  const apart = Math.abs(billedMicro - countedMicro);
  return apart * 100 > Math.max(billedMicro, countedMicro) * DIFFERENCE_PERCENT;
}
