const { TURNPIKE_LONG } = import.meta.env as Readonly<Record<string, unknown>>;

/** Whether this is `npm run test:long`: the same proofs with as much as minutes and hours allow. */
export const IS_LONG = TURNPIKE_LONG === "1";

/** How much a test tries: little enough for `npm test`, or what a long run is there for. */
export function effort(usual: number, long: number): number {
  return IS_LONG ? long : usual;
}
