import { expect, it } from "vitest";
import {
  GOOGLE_FAILURES,
  jsonReply,
  candidateResponse,
  errorBody,
} from "../fixtures/google-replies.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo } from "./adapter-kit.ts";
import { GEMINI, MODEL } from "./google-kit.ts";

async function failureOf(reply: RawReply, stream = false) {
  const { answer } = await answerTo(GEMINI, { upstreamId: MODEL, stream }, reply);
  if (answer.kind !== "failure") throw new Error(answer.kind);
  return answer.failure;
}

const WAIT = { retryAfterMs: 34_400 };
const EXPECTED: Readonly<Record<string, object>> = {
  badKey: { kind: "disabled", reason: "400" },
  billing: { kind: "disabled", reason: "400" },
  invalid: { kind: "refused", reason: "400", param: null, code: null },
  context: {
    kind: "refused",
    reason: "400",
    param: "messages",
    code: "context_length_exceeded",
  },
  unauthenticated: { kind: "disabled", reason: "401" },
  denied: { kind: "disabled", reason: "403" },
  unknownModel: { kind: "disabled", reason: "404" },
  quota: { kind: "overloaded", reason: "429", ...WAIT },
  quotaWithoutHint: { kind: "overloaded", reason: "429" },
  internal: { kind: "retry", reason: "500", again: true },
  wrapped: { kind: "overloaded", reason: "429", ...WAIT },
  unavailable: { kind: "overloaded", reason: "503" },
  deadline: { kind: "retry", reason: "504", again: true },
  array: { kind: "overloaded", reason: "429", ...WAIT },
  html: { kind: "retry", reason: "502", again: true },
};

it("the list of expected Google failures covers every recorded error", () => {
  expect(Object.keys(EXPECTED)).toEqual(Object.keys(GOOGLE_FAILURES.errors));
});

it.each(Object.entries(GOOGLE_FAILURES.errors))(
  "the Google adapter maps the error %s in JSON and streams, without revealing the provider's secrets",
  async (name, reply) => {
    for (const stream of [false, true]) {
      const failure = await failureOf(reply, stream);
      const { message, ...rest } = failure;
      expect(rest).toEqual(EXPECTED[name]);
      expect(message !== undefined).toBe(failure.kind === "refused");
      // Only a 400 keeps the text, without names of the gateway or the provider.
      const text = JSON.stringify(failure).replaceAll("canary upstream text", "");
      expect(text).not.toMatch(/canary/i);
    }
  },
);

it("the Google adapter recognizes a wrong API key by the error's reason or text", async () => {
  const details = [{ reason: "API_KEY_SERVICE_BLOCKED" }];
  const byReason = errorBody(400, "INVALID_ARGUMENT", "No.", details);
  const byMessage = errorBody(
    400,
    "INVALID_ARGUMENT",
    "API key expired. Please renew the API key.",
  );
  for (const body of [byReason, byMessage]) {
    expect(await failureOf(jsonReply(body, 400))).toEqual({ kind: "disabled", reason: "400" });
  }
});

it("the Google adapter ignores text about a wrong API key if Google quotes this text from the client", async () => {
  const message =
    "Invalid JSON payload received. Unknown name \"API key not valid\" at 'tools[0]': Cannot find field.";
  const failure = await failureOf(jsonReply(errorBody(400, "INVALID_ARGUMENT", message), 400));
  expect(failure.kind).toBe("refused");
});

it("the Google adapter disables the route after a 403 only if the body has a Google error status", async () => {
  const html = { status: 403, headers: { "content-type": "text/html" }, body: "<html>403</html>" };
  expect(await failureOf(html)).toEqual({ kind: "retry", reason: "403", fault: "request" });
  const named = jsonReply(errorBody(403, "PERMISSION_DENIED", ""), 403);
  expect(await failureOf(named)).toMatchObject({ kind: "disabled" });
});

it("the Google adapter removes project names and numbers from a 400", async () => {
  const message = "Bad thing in projects/canary-1/locations/eu of project 123456789012: no.";
  const failure = await failureOf(jsonReply(errorBody(400, "INVALID_ARGUMENT", message), 400));
  expect(failure.message).toBe("Bad thing in [removed]/locations/eu of [removed]: no.");
});

it.each([
  ["34.4s", 34_400],
  ["0s", 0],
  ["0.0004s", 1],
  ["99999s", 3_600_000],
  ["-3s", undefined],
  ["soon", undefined],
  [{}, undefined],
])("the Google adapter reads a retryDelay of %j as %j ms", async (retryDelay, ms) => {
  const reply = jsonReply(errorBody(429, "RESOURCE_EXHAUSTED", "", [{ retryDelay }]), 429);
  expect((await failureOf(reply)).retryAfterMs).toBe(ms);
});

it("the Google adapter maps an error inside a 200 by its code or status", async () => {
  const inside = (value: object) => failureOf(jsonReply(value));
  expect(await inside(errorBody(429, "RESOURCE_EXHAUSTED", ""))).toMatchObject({
    kind: "overloaded",
  });
  expect(await inside({ error: { status: "UNAVAILABLE" } })).toMatchObject({ reason: "503" });
  expect(await inside({ error: { status: "NEW", code: 7 } })).toMatchObject({ reason: "500" });
  const reply = jsonReply(errorBody(503, "UNAVAILABLE", ""));
  expect(await failureOf(reply, true)).toMatchObject({ kind: "overloaded" });
});

it("the Google adapter treats a response without output as a failure", async () => {
  for (const body of [{}, { candidates: [] }, { candidates: "x" }, { promptFeedback: {} }]) {
    expect(await failureOf(jsonReply(body))).toEqual({ kind: "retry", reason: "bad_answer" });
  }
});

const usageOf = async (usage: object) => {
  const reply = jsonReply(candidateResponse([{ text: "x" }], usage, { finish: "STOP" }));
  const { answer } = await answerTo(GEMINI, { upstreamId: MODEL }, reply);
  return answer.kind === "json" ? answer.usage : answer;
};

it.each([
  {},
  { trafficType: "ON_DEMAND" },
  { promptTokenCount: "9" },
  { promptTokenCount: -1 },
  { promptTokenCount: 9, candidatesTokenCount: 1.5 },
  { promptTokenCount: 9, thoughtsTokenCount: 1e12 },
  { promptTokenCount: 9, cachedContentTokenCount: [] },
])("the Google adapter returns no usage for %j", async (usage) => {
  expect(await usageOf(usage)).toBeNull();
});
