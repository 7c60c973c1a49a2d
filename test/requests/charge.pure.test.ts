import { describe, expect, it } from "vitest";
import { computeCharge, computeChargeWithoutResponse } from "../../src/models/requests/charge.ts";
import type { StreamEnding } from "../../src/models/requests/charge.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import { CAP, CHOICES, LIKELY, ROUTE, runOf, SERVING, USAGE } from "./run-fixture.ts";

const OUTPUT = 30;
const estimate = { ...NO_USAGE, input: LIKELY, output: OUTPUT };
const run = runOf();

const charged = (
  seen: { usage?: typeof USAGE; partial?: typeof USAGE; output?: number },
  ending: StreamEnding,
  hasClientStoppedReading: boolean,
) =>
  computeCharge(
    run,
    SERVING,
    { usage: null, output: OUTPUT, finishReason: null, ...seen },
    { ending, hasClientStoppedReading },
  );

describe("the charge for a response", () => {
  it("equals the price of the reported usage, however the response ends", () => {
    for (const ending of ["complete", "failed", "stopped"] as const) {
      for (const hasClientStoppedReading of [false, true]) {
        expect(charged({ usage: USAGE }, ending, hasClientStoppedReading)).toMatchObject({
          kind: "settle",
          usage: USAGE,
          estimated: false,
        });
      }
    }
  });

  it("equals zero if the provider reports zero tokens", () => {
    expect(charged({ usage: NO_USAGE }, "complete", false)).toMatchObject({
      usage: NO_USAGE,
      estimated: false,
    });
  });

  it.each([
    ["a finished response", "complete", false],
    ["a finished response after a disconnect", "complete", true],
    ["a response that our timer ended", "stopped", false],
    ["a disconnect after which the drain time ended", "stopped", true],
    ["a disconnect followed by a broken stream", "failed", true],
    ["a failure that the request caused", "provoked", false],
  ] as const)("covers input and output so far for %s without reported usage", (_, ending, away) => {
    expect(charged({}, ending, away)).toMatchObject({
      kind: "settle",
      usage: estimate,
      estimated: true,
    });
  });

  it("equals zero if the provider breaks off without reporting usage, at an estimated cost to the operator", () => {
    const lost = { usage: estimate, estimated: true };
    expect(charged({}, "failed", false)).toMatchObject({ kind: "void", lost });
  });

  it.each([
    ["the last report counts for a finished response", "complete", 20, [USAGE.output, false]],
    ["a report near the start doesn't count", "complete", 200, [CAP * CHOICES, true]],
    ["a failure that the request caused counts the report", "provoked", 20, [USAGE.output, false]],
    [
      "more output than reported is estimated up to the cap",
      "provoked",
      200,
      [CAP * CHOICES, true],
    ],
    ["a response that we stopped counts its forwarded output", "stopped", 30, [30, true]],
    ["a stopped response counts at least the report", "stopped", 1, [USAGE.output, true]],
  ] as const)(
    "includes usage reported before the end as expected: %s",
    (_, ending, output, [tokens, estimated]) => {
      const outcome = charged({ partial: USAGE, output }, ending, false);
      expect(outcome).toMatchObject({ usage: { ...USAGE, output: tokens }, estimated });
    },
  );

  it("equals zero if the provider reports usage before the end and then breaks off", () => {
    const lost = { usage: USAGE };
    expect(charged({ partial: USAGE }, "failed", false)).toMatchObject({ kind: "void", lost });
    expect(charged({ partial: USAGE }, "failed", true)).toMatchObject({ kind: "settle" });
  });

  it("never exceeds the output cap's price if the usage is estimated", () => {
    const outcome = charged({ output: 10 * CAP * CHOICES }, "stopped", false);
    expect(outcome).toMatchObject({ usage: { output: CAP * CHOICES } });
  });

  it("covers only the input, at the called route's price, if the client disconnects before the response", () => {
    const { firstByteMs: _, ...unanswered } = SERVING;
    expect(computeChargeWithoutResponse(run, { ...unanswered, attempts: 2 })).toEqual({
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
