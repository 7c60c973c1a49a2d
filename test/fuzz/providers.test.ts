import * as fc from "fast-check";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { ProviderResult, StreamEvent } from "../../src/models/core/provider.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { callOf, mockNetwork } from "../providers/adapter-kit.ts";
import { findFaults, mustHold, runsOf, TIMEOUT_MS } from "./find-faults.ts";
import type { CheckResult } from "./find-faults.ts";
import { at, mutatedText, mutations, withBytes } from "./mutate.ts";
import { pieces } from "./pieces.ts";
import { CASES } from "./provider-cases.ts";
import { mustBeValidStream } from "./valid-events.ts";

afterAll(() => {
  vi.restoreAllMocks();
});

const input = fc.record({
  which: fc.nat(CASES.length - 1),
  /** The payload of a stream to change. */
  place: fc.nat(30),
  mutation: mutations(1),
  cuts: fc.array(fc.nat(3000), { maxLength: 6 }),
});
type Input = typeof input extends fc.Arbitrary<infer T> ? T : never;

/**
 * Returns the provider's response with one changed JSON text and changed bytes, depending on the
 * mutation.
 */
function changed({ which, place, mutation }: Input): RawReply {
  const { reply } = at(CASES, which);
  const { body } = reply;
  if (typeof body !== "string") return { ...reply, body: withBytes(body, mutation) };
  const parts = body.split(/^(?=data: ?[{])/m);
  const index = place % parts.length;
  const [, name = "", json = "", rest = ""] =
    /^(data: ?|)(\{[^\n]*\})(\s[^]*|)$/.exec(parts[index] ?? "") ?? [];
  if (json !== "") {
    parts[index] =
      name + mutatedText([JSON.parse(json)], mutation).replaceAll(/[\r\n]/g, " ") + rest;
  }
  return { ...reply, body: withBytes(parts.join(""), mutation) };
}

async function eventsOf(answer: ProviderResult & { kind: "stream" }): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for (;;) {
    const batch = await answer.events.next();
    if (batch === null) return events;
    events.push(...batch);
  }
}

/** Returns the adapter's result for a response that arrives in these pieces. */
async function readInPieces(
  one: Input,
  cuts: readonly number[],
): Promise<[ProviderResult, StreamEvent[]]> {
  const { provider, stream, upstreamId } = at(CASES, one.which);
  mockNetwork(changed(one), (bytes) => pieces(bytes, cuts));
  const answer = await provider.send(callOf({ stream, upstreamId }));
  return [answer, answer.kind === "stream" ? await eventsOf(answer) : []];
}

function written([answer, events]: [ProviderResult, StreamEvent[]]): string {
  const text = JSON.stringify(answer.kind === "stream" ? events : answer);
  return text.replaceAll(/"call_[0-9A-Za-z]{24}"/g, '"call_minted"');
}

/**
 * Returns the secrets that must not appear. Hosts and accounts are recognized by their format,
 * which changed bytes can break.
 */
function ours({ mutation }: Input): readonly string[] {
  return mutation.bytes.length > 0 ? [CANARY.key] : [CANARY.key, CANARY.host, CANARY.account];
}

async function isSound(one: Input): Promise<CheckResult> {
  const whole = await readInPieces(one, []);
  const [answer, events] = whole;
  const text = written(whole);
  mustHold(
    written(await readInPieces(one, one.cuts)) === text,
    "another answer for other cuts",
    text,
  );
  mustBeValidStream(events);
  const failures = events.flatMap((event) => (event.kind === "error" ? [event.failure] : []));
  if (answer.kind === "failure") failures.push(answer.failure);
  const failureText = JSON.stringify(failures);
  mustHold(
    !ours(one).some((word) => failureText.includes(word)),
    "the response contains internal data",
    failureText,
  );
  return failures.length === 0 ? "accepted" : "refused";
}

function shownInput(one: Input): string {
  const { provider, stream } = at(CASES, one.which);
  const { body, status } = changed(one);
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  return `${provider.id} ${stream ? "stream" : "json"} ${status ?? 200} ${text}`;
}

describe("a provider's adapter with a generated response", () => {
  it(
    `returns the same result however the response is split, never throws, and reveals no secret, for ${runsOf("providers")} generated inputs`,
    { timeout: TIMEOUT_MS },
    async () => {
      const checking = { inputs: input, show: shownInput, check: isSound };
      expect(await findFaults("providers", checking)).toBe("");
    },
  );
});
