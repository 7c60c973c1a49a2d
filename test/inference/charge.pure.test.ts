import { describe, expect, it } from "vitest";
import { chargeFor, unseenCharge } from "../../src/models/requests/charge.ts";
import type { StreamEnding } from "../../src/models/requests/charge.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import { CAP, CHOICES, LIKELY, ROUTE, runOf, SERVING, USAGE } from "./run-fixture.ts";

const OUTPUT = 30;
const estimate = { ...NO_USAGE, input: LIKELY, output: OUTPUT };
const run = runOf();

const charged = (
  seen: { usage?: typeof USAGE; partial?: typeof USAGE; output?: number },
  ending: StreamEnding,
  readerAway: boolean,
) =>
  chargeFor(
    run,
    SERVING,
    { usage: null, output: OUTPUT, finishReason: null, ...seen },
    { ending, readerAway },
  );

describe("what an answer costs", () => {
  it("reported usage counts exactly, however the answer ended", () => {
    for (const ending of ["complete", "failed", "stopped"] as const) {
      for (const readerAway of [false, true]) {
        expect(charged({ usage: USAGE }, ending, readerAway)).toMatchObject({
          kind: "settle",
          usage: USAGE,
          estimated: false,
        });
      }
    }
  });

  it("explicit zeros are zeros", () => {
    expect(charged({ usage: NO_USAGE }, "complete", false)).toMatchObject({
      usage: NO_USAGE,
      estimated: false,
    });
  });

  it.each([
    ["a finished answer", "complete", false],
    ["a finished answer whose reader left", "complete", true],
    ["one that our own timer ended", "stopped", false],
    ["one whose reader left and whose drain ran out", "stopped", true],
    ["one that broke off while its reader was away", "failed", true],
    ["one that its request made fail", "provoked", false],
  ] as const)("%s costs, without usage, its input and the output so far", (_, ending, away) => {
    expect(charged({}, ending, away)).toMatchObject({
      kind: "settle",
      usage: estimate,
      estimated: true,
    });
  });

  it("one that the upstream broke off by itself, without usage, costs nothing", () => {
    expect(charged({}, "failed", false)).toMatchObject({ kind: "void" });
  });

  it.each([
    ["a finished answer has used what was last said of it", "complete", 20, [USAGE.output, false]],
    ["but not what was said near its beginning", "complete", 200, [CAP * CHOICES, true]],
    ["nor one that its request made fail", "provoked", 20, [USAGE.output, false]],
    ["which is estimated where little had been said", "provoked", 200, [CAP * CHOICES, true]],
    ["one that we stopped counts what it forwarded", "stopped", 30, [30, true]],
    ["and no less than was reported", "stopped", 1, [USAGE.output, true]],
  ] as const)("usage so far: %s", (_, ending, output, [wanted, estimated]) => {
    const outcome = charged({ partial: USAGE, output }, ending, false);
    expect(outcome).toMatchObject({ usage: { ...USAGE, output: wanted }, estimated });
  });

  it("usage so far of one that the upstream broke off by itself is absorbed", () => {
    expect(charged({ partial: USAGE }, "failed", false)).toMatchObject({ kind: "void" });
    expect(charged({ partial: USAGE }, "failed", true)).toMatchObject({ kind: "settle" });
  });

  it("an estimate never counts more output than was allowed", () => {
    const outcome = charged({ output: 10 * CAP * CHOICES }, "stopped", false);
    expect(outcome).toMatchObject({ usage: { output: CAP * CHOICES } });
  });

  it("charges a client that left early the input at the asked route", () => {
    const { firstByteMs: _, ...asked } = SERVING;
    expect(unseenCharge(run, { ...asked, attempts: 2 })).toEqual({
      kind: "settle",
      route: { ...SERVING, attempts: 2, firstByteMs: 7 },
      usage: { ...NO_USAGE, input: LIKELY },
      price: ROUTE.price,
      cost: LIKELY,
      estimated: true,
      finishReason: null,
    });
  });
});
