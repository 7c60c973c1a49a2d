/**
 * Picodollars per micro-credit. Token count times price per million is a whole number of
 * picodollars.
 */
export const PICOS_PER_MICRO = 1_000_000n;

/** Returns `amount` / 10^`scale` without trailing zeros. */
export function decimalText(amount: bigint, scale: number): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(scale + 1, "0");
  const fraction = digits.slice(-scale).replace(/0+$/, "");
  const whole = digits.slice(0, -scale);
  return `${amount < 0n ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`;
}
