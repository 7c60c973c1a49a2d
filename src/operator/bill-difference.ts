const LARGE_DIFFERENCE_PERCENT = 2;

export function isLargeDifference(billedMicro: number, countedMicro: number): boolean {
  const difference = Math.abs(billedMicro - countedMicro);
  return difference * 100 > Math.max(billedMicro, countedMicro) * LARGE_DIFFERENCE_PERCENT;
}
