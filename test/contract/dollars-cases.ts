/**
 * Dollar amounts as JSON texts, with the returned dollars and micro-credits. Null means no limit.
 */
export const DOLLARS: readonly (readonly [
  text: string,
  shown: number | null,
  micros: number | null,
])[] = [
  ["0", 0, 0],
  ["-0", 0, 0],
  ["0.1", 0.1, 100_000],
  ["0.3", 0.3, 300_000],
  ["1.005", 1.005, 1_005_000],
  ["4.35", 4.35, 4_350_000],
  ["8.2", 8.2, 8_200_000],
  ["8.200000000", 8.2, 8_200_000],
  ["0.000001", 0.000001, 1],
  ["1e-6", 0.000001, 1],
  ["999999999.999999", 999_999_999.999999, 999_999_999_999_999],
  ["1e9", 1_000_000_000, 1_000_000_000_000_000],
  ["null", null, null],
];

/** JSON texts that are invalid dollar amounts. */
export const NO_DOLLARS: readonly string[] = [
  "0.0000001",
  "1.0000005",
  "5e-324",
  "-0.000001",
  "-1",
  "1000000000.000001",
  "1e308",
  "1e400",
  "-1e400",
  '"5"',
  '""',
  '"NaN"',
  "true",
  "[]",
  "[1]",
  "{}",
];

/** JSON texts that are invalid thresholds, including null. */
export const NO_FRACTIONS: readonly string[] = [
  "-0.1",
  "1.1",
  "1.0000001",
  "80",
  "1e400",
  "null",
  '"0.8"',
  "true",
  "[]",
];
