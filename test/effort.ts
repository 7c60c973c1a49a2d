const { TURNPIKE_LONG } = import.meta.env as Readonly<Record<string, unknown>>;

/** Whether this is `npm run test:long`, which runs the same tests with more inputs. */
export const IS_LONG = TURNPIKE_LONG === "1";

/** Returns the amount of work for this run: small for `npm test`, large for a long run. */
export function effortFor(usual: number, long: number): number {
  return IS_LONG ? long : usual;
}
