const DIFFERENCE_PERCENT = 2;

export function isLargeDifference(billedMicro: number, countedMicro: number): boolean {
  const apart = Math.abs(billedMicro - countedMicro);
  return apart * 100 > Math.max(billedMicro, countedMicro) * DIFFERENCE_PERCENT;
}
