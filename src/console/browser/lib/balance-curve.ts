/** A change of the balance on a UTC day, in micro-credits. Spend is negative. */
export type BalanceMovement = { readonly day: string; readonly micros: number };

export function balanceCurve(
  nowMicros: number,
  movements: readonly BalanceMovement[],
  days: readonly string[],
): readonly number[] {
  const sumAfter = (day: string): number =>
    movements.reduce((sum, one) => (one.day > day ? sum + one.micros : sum), 0);
  return days.map((day) => nowMicros - sumAfter(day));
}
