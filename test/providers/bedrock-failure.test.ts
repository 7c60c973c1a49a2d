import { describe, expect, it } from "vitest";
import { BEDROCK_FAILURES, errorReply, streamReply } from "../fixtures/bedrock-replies.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo, eventsOf } from "./adapter-kit.ts";
import { ACCESS_KEY, BEDROCK, NOVA, signing } from "./bedrock-kit.ts";

const CALL = { upstreamId: NOVA };
const failureOf = async (reply: RawReply, call: object = CALL) => {
  const { answer } = await answerTo(BEDROCK, call, reply);
  if (answer.kind !== "failure") throw new Error(answer.kind);
  return answer.failure;
};

it.each([
  ["invalid", { kind: "refused", reason: "400" }],
  ["context", { kind: "refused", code: "context_length_exceeded", param: "messages" }],
  ["model", { kind: "disabled", reason: "model" }],
  ["quota", { kind: "overloaded", reason: "429" }],
  ["denied", { kind: "disabled", reason: "403" }],
  ["token", { kind: "disabled", reason: "401" }],
  ["signature", { kind: "disabled", reason: "401" }],
  ["missing", { kind: "disabled", reason: "404" }],
  ["slow", { kind: "retry", reason: "408", again: true }],
  ["failed", { kind: "retry", reason: "500", again: true }],
  ["throttled", { kind: "overloaded", reason: "429" }],
  ["notReady", { kind: "overloaded", reason: "429" }],
  ["broken", { kind: "retry", reason: "500", again: true }],
  ["unavailable", { kind: "overloaded", reason: "503" }],
  ["html", { kind: "retry", reason: "502", again: true }],
])("the Bedrock adapter maps the error %s to %j, streamed or not", async (name, expected) => {
  const reply = BEDROCK_FAILURES.errors[name];
  if (reply === undefined) throw new Error(name);
  expect(await failureOf(reply)).toMatchObject(expected);
  expect(await failureOf(reply, { ...CALL, stream: true })).toMatchObject(expected);
});

it.each([
  "Invocation of model ID amazon.nova-2-lite-v1:0 with on-demand throughput isn't supported. Retry your request with the ID or ARN of an inference profile that contains this model.",
  "Operation not allowed",
  "Access to this model is not available for channel program accounts.",
  "You don't have access to the model with the specified model ID.",
  "This model version has reached the end of its life.",
])(
  "the Bedrock adapter attributes an unavailable model to the route instead of the request: %s",
  async (message) => {
    const reply = errorReply(400, "ValidationException", message);
    expect(await failureOf(reply)).toEqual({ kind: "disabled", reason: "model" });
  },
);

const QUOTED = [
  "1 validation error detected: Value 'the model identifier' at 'toolConfig.toolChoice.tool.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
  "Value 'Operation not allowed' at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member must have length less than or equal to 64",
  "The model returned the following errors: no inference profile, end of its life, on-demand throughput, access to this model",
];

it.each(QUOTED)(
  "the Bedrock adapter ignores text about models that an error quotes from the client: %s",
  async (message) => {
    const reply = errorReply(400, "ValidationException", message);
    expect(await failureOf(reply)).toMatchObject({ kind: "refused" });
  },
);

it("the Bedrock adapter attributes a 403 to the provider only if the response names an exception", async () => {
  const headers = { "content-type": "text/html" };
  const firewall = { status: 403, headers, body: "<html>403 Forbidden</html>" };
  expect(await failureOf(firewall)).toEqual({ kind: "retry", reason: "403", fault: "request" });
  const named = { status: 403, headers: { "x-amzn-errortype": "AccessDeniedException" }, body: "" };
  expect(await failureOf(named)).toMatchObject({ kind: "disabled" });
});

it("the Bedrock adapter maps an error by its exception name in header or body, not by its status", async () => {
  const message = JSON.stringify({ message: "Slow down." });
  const headers = { "x-amzn-errortype": "com.amazon.coral.service#ThrottlingException" };
  expect(await failureOf({ status: 400, headers, body: message })).toMatchObject({
    kind: "overloaded",
  });
  const body = JSON.stringify({ __type: "ThrottlingException", message: "Slow down." });
  expect(await failureOf({ status: 400, headers: {}, body })).toMatchObject({ kind: "overloaded" });
  const odd = { "x-amzn-errortype": "constructor" };
  expect(await failureOf({ status: 500, headers: odd, body })).toMatchObject({ reason: "500" });
});

it.each([
  ["an exception", { Output: { __type: "x" }, __type: "#ThrottlingException" }, "429"],
  ["no output", { Output: { __type: "#UnknownOperationException" }, Version: "1.0" }, "bad_answer"],
  ["a message in another format", { output: { message: "x" } }, "bad_answer"],
])("the Bedrock adapter treats a 200 with %s as a failure", async (_, body, reason) => {
  const headers = { "content-type": "application/json" };
  expect(await failureOf({ headers, body: JSON.stringify(body) })).toMatchObject({ reason });
});

describe("a secret of the gateway in a Bedrock error", () => {
  const all = [...Object.values(CANARY), "123456789012", "arn:", "inference-profile"];
  /** The text itself is the provider's, which its own 400 can contain. */
  const secret = all.filter((text) => text !== CANARY.text);

  it.each(Object.entries(BEDROCK_FAILURES.errors))(
    "doesn't appear in the failure: %s",
    async (_, reply) => {
      const text = JSON.stringify(await failureOf(reply));
      for (const one of secret) expect(text).not.toContain(one);
    },
  );

  it("doesn't appear in an event of a stream", async () => {
    for (const reply of [BEDROCK_FAILURES.errorFirst, BEDROCK_FAILURES.errorMid]) {
      const events = await eventsOf(BEDROCK, CALL, reply);
      expect(events.at(-1)?.kind).toBe("error");
      for (const one of all) expect(JSON.stringify(events)).not.toContain(one);
    }
  });

  it("disappears from the message, including every part of an access key", async () => {
    const session = "short+session/token=";
    const { accessKeyId, secretAccessKey } = ACCESS_KEY;
    const message = `Bad: ${accessKeyId}, ${secretAccessKey}, ${session}, AKIAIOSFODNN7EXAMPLE.`;
    const reply = errorReply(400, "ValidationException", message);
    const { answer } = await answerTo(signing(session), CALL, reply);
    expect(answer).toMatchObject({
      failure: { message: "Bad: [removed], [removed], [removed], [removed]." },
    });
  });
});

it("the Bedrock adapter returns only an error if the stream's first event is an error", async () => {
  const events = await eventsOf(BEDROCK, CALL, BEDROCK_FAILURES.errorFirst);
  expect(events).toEqual([{ kind: "error", failure: { kind: "overloaded", reason: "429" } }]);
  expect(await eventsOf(BEDROCK, CALL, streamReply([]))).toHaveLength(1);
});
