/** What an open loop of one rate saw: requests a second, and times in ms from when each was due. */
export type Step = {
  readonly offered: number;
  /** Answered in full, with 200, by the end of the step and the patience after it. */
  readonly achieved: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};
export type Knee = {
  /** The highest rate that held. */
  readonly last: Step;
  /** The low load that it is compared with. */
  readonly low: Step;
  /** False when time was up, or no step held, before a rate was found that did not hold. */
  readonly isFound: boolean;
  readonly steps: readonly Step[];
};
export type KneeSearch = {
  /** Offers a rate, in requests a second, for a while. */
  readonly offer: (rate: number) => Promise<Step>;
  readonly low: Step;
  /** The first rate to try; lower ones follow as long as none holds. */
  readonly from: number;
  readonly isTimeUp: () => boolean;
};

/** A step holds while its p99 is at most so often that of the low load, and so much of it is achieved. */
export const SLOWER_MAX = 5;
const ACHIEVED_MIN = 0.97;
const STEP = 1.15;
const HALVINGS = 2;
const LOWEST = 0.05; // of `from`; what holds nowhere above it has no knee

/**
 * Raises the rate by 15 % until a step does not hold, twice in a row (the first may be the machine's
 * doing), then halves the gap to the last that held twice: the knee is known to about 4 %.
 */
export async function findKnee({ offer, low, from, isTimeUp }: KneeSearch): Promise<Knee> {
  const steps: Step[] = [];
  const tryRate = async (rate: number): Promise<Step | null> => {
    const step = await offer(rate);
    steps.push(step);
    return holds(step, low) ? step : null;
  };
  const tryTwice = async (rate: number): Promise<Step | null> =>
    (await tryRate(rate)) ?? (isTimeUp() ? null : await tryRate(rate));
  let rate = from;
  let last = await tryTwice(rate);
  while (last === null && !isTimeUp() && rate > from * LOWEST) {
    rate /= STEP ** 3;
    last = await tryTwice(rate);
  }
  if (last === null) return { last: low, low, steps, isFound: false };
  let tooMuch: number | null = null;
  while (tooMuch === null && !isTimeUp()) {
    rate *= STEP;
    const step: Step | null = await tryTwice(rate);
    if (step === null) tooMuch = rate;
    else last = step;
  }
  for (let i = 0; i < HALVINGS && tooMuch !== null && !isTimeUp(); i++) {
    const middle = Math.sqrt(last.offered * tooMuch);
    const step = await tryRate(middle);
    if (step === null) tooMuch = middle;
    else last = step;
  }
  return { last, low, steps, isFound: tooMuch !== null };
}

/** Whether a load is borne: not much slower than a low one, and nearly all of it answered. */
export function holds(step: Step, low: Step): boolean {
  return step.p99Ms <= SLOWER_MAX * low.p99Ms && step.achieved >= ACHIEVED_MIN * step.offered;
}
