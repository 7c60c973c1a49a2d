import { expect, it } from "vitest";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import { cleanMessage } from "../../src/models/core/cleaned-message.ts";
import { parseHttpFailure, parseRetryAfterMs } from "../../src/models/core/upstream-failure.ts";

const NO_HEADERS = new Headers();
const wait = (headers: Record<string, string>) => parseRetryAfterMs(new Headers(headers));
const failure = (status: number, error: unknown = { message: "no" }) =>
  parseHttpFailure(status, NO_HEADERS, JSON.stringify({ error }));

/** Returns the code and param of a rejection as clients see them. */
const shown = (fields: Record<string, string>, secret?: string) => {
  const refused = parseHttpFailure(400, NO_HEADERS, JSON.stringify({ error: fields }), secret);
  return [refused.code, refused.param];
};

it("every status of a provider maps to one kind of failure", () => {
  const kinds: Record<string, number[]> = {
    retry: [300, 301, 302, 307, 405, 408, 409, 424, 500, 502, 504, 520],
    overloaded: [429, 503, 529],
    disabled: [401, 402, 403, 404],
    refused: [400, 413, 422],
  };
  for (const [kind, statuses] of Object.entries(kinds)) {
    const read = statuses.map((status) => failure(status).kind);
    expect(read).toEqual(statuses.map(() => kind));
  }
  expect([408, 500, 302].map((status) => failure(status).again)).toEqual([true, true, false]);
});

it("a deeply nested error code becomes an error event instead of causing an exception", () => {
  const deep = `${"[".repeat(5000)}1${"]".repeat(5000)}`;
  for (const field of ["code", "status"]) {
    const events = new ChatChunkReader().read(`{"error":{"${field}":${deep}}}`, "message");
    expect(events).toMatchObject([{ kind: "error", failure: { kind: "retry" } }]);
  }
});

it("a provider's 5xx counts against the route unless the error describes a bad request", () => {
  const wrong = [
    { message: "litellm.BadRequestError: no", code: "400" },
    { message: "no", code: 422 },
    { message: "no", type: "BadRequestError" },
    { message: "no", status: "INVALID_ARGUMENT", code: 400 },
    { message: "Failed to parse tools: unknown type" },
    { message: "the request exceeds the available context size" },
  ];
  for (const status of [424, 500, 501, 502, 504, 520]) {
    expect(wrong.map((error) => failure(status, error).kind)).toEqual(wrong.map(() => "refused"));
    const model = { message: "Model 'x' not found", type: "BadRequestError" };
    expect(failure(status, model).kind).toBe("disabled");
    for (const error of [{ message: "no" }, { code: 500 }, { type: "invalid_request_error" }]) {
      expect([status, failure(status, error).kind]).toEqual([status, "retry"]);
    }
  }
  expect(failure(503, { message: "no", code: 400 }).kind).toBe("overloaded");
});

it("xAI's 403 for content is a rejection of the request, and doesn't reveal the operator's team or key", () => {
  const body = {
    code: "The caller does not have permission to execute the specified operation",
    error:
      "Content violates usage guidelines. Team: acme-corp, API key ID: 1f2e, Model: grok-4-0709, Failed check: SAFETY_CHECK_TYPE_BIO",
  };
  expect(parseHttpFailure(403, NO_HEADERS, JSON.stringify(body))).toEqual({
    kind: "refused",
    reason: "403",
    message: "Content violates usage guidelines.",
    param: null,
    code: "content_filter",
  });
});

it("a provider's text is returned only for a rejected request, and never with a key", () => {
  const secret = "hunter2-hunter2";
  for (const status of [302, 401, 404, 408, 429, 500, 503]) {
    const body = JSON.stringify({ error: { message: `canary ${secret}` } });
    const read = JSON.stringify(parseHttpFailure(status, NO_HEADERS, body, secret));
    expect(read).not.toMatch(/canary|hunter2/);
  }
  const refused = parseHttpFailure(
    400,
    NO_HEADERS,
    `{"error":{"message":"bad key ${secret}"}}`,
    secret,
  );
  expect(refused.message).toBe("bad key [removed]");
});

it("the error for a rejected request keeps a valid param and code, but no other fields", () => {
  expect(failure(400, { message: "no", param: "messages[0].role", code: "invalid_value" })).toEqual(
    {
      kind: "refused",
      reason: "400",
      message: "no",
      param: "messages[0].role",
      code: "invalid_value",
    },
  );
  const odd = failure(400, { message: "", param: "<script>", code: 400 });
  expect(odd).toMatchObject({ param: null, code: null, message: expect.stringMatching(/\w/) });
  expect(parseHttpFailure(400, NO_HEADERS, "<html>nope</html>").kind).toBe("refused");
});

it("every provider's error for a too long prompt gets the code and text that clients match", () => {
  const errors = [
    {
      message:
        "This model's maximum context length is 128000 tokens. However, you requested 130112.",
    },
    { message: "prompt is too long: 209752 tokens > 200000 maximum" },
    { message: "the request exceeds the available context size" },
    { message: "Please reduce the length of the messages or completion." },
    { message: "too big", code: "context_length_exceeded" },
  ];
  for (const error of errors) {
    expect(failure(400, error)).toMatchObject({
      code: "context_length_exceeded",
      message: expect.stringContaining("maximum context length"),
    });
  }
  const flat = '{"object":"error","message":"maximum context length is 4096 tokens","code":400}';
  expect(parseHttpFailure(400, NO_HEADERS, flat).code).toBe("context_length_exceeded");
  const other = { message: "maximum context length", code: "string_above_max_length" };
  expect(failure(400, other).code).toBe("string_above_max_length");
});

it("an error message omits keys, addresses, hosts and accounts, and is shortened to one line", () => {
  const dirty = [
    "Incorrect API key provided: sk-proj-abc123DEF456ghi789. You can find it",
    "at https://platform.openai.com/account/api-keys or upstream.internal:8080/v1",
    "for org-abcdefghijkl, proj_12345678, user-abcdef12, 10.0.0.7:443, me@corp.example,",
    "localhost:11434, sk-ab***yz, Bearer abc.def, 0123456789abcdef0123456789abcdef",
  ].join("\n");
  const clean = cleanMessage(dirty);
  expect(clean).not.toMatch(
    /sk-|https?:|openai|internal|org-|proj_|user-|10\.0|corp|localhost|\*|abc\.def|0123|\n/,
  );
  expect(clean.length).toBeLessThanOrEqual(300);
  expect(cleanMessage("x ".repeat(100_000)).length).toBeLessThanOrEqual(300);
  const plain = "Invalid type for 'messages[0].content': expected a string, got 4.1 (max_tokens).";
  expect(cleanMessage(plain)).toBe(plain);
});

it("an error's code and param are returned unchanged, or omitted if they might contain a secret", () => {
  const plain = { code: "string_above_max_length", param: "messages[0].content" };
  expect(shown(plain, "hunter2")).toEqual([plain.code, plain.param]);
  expect(shown({ code: "token_limit_exceeded", param: "max_completion_tokens" })).toEqual([
    "token_limit_exceeded",
    "max_completion_tokens",
  ]);
  expect(shown({ code: "bad_hunter2", param: "hunter2" }, "hunter2")).toEqual([null, null]);
  const key = "gsk_0123456789abcdef0123456789";
  expect(shown({ code: key, param: key })).toEqual([null, null]);
  expect(shown({ code: "a b", param: "eu.api.openai.com" })).toEqual([null, null]);
});

it("a retry hint is parsed from milliseconds, seconds, or a date relative to the response's date", () => {
  expect(wait({ "retry-after-ms": "1500", "retry-after": "9" })).toBe(1500);
  expect(wait({ "retry-after": "7" })).toBe(7000);
  expect(wait({ "retry-after": "0.5" })).toBe(500);
  const date = "Fri, 20 Nov 2026 10:00:00 GMT";
  expect(wait({ date, "retry-after": "Fri, 20 Nov 2026 10:00:30 GMT" })).toBe(30_000);
  expect(wait({ date, "retry-after": "Fri, 20 Nov 2026 09:00:00 GMT" })).toBe(0);
  expect(wait({ "retry-after": "86400" })).toBe(3_600_000);
  const bad = ["-1", "soon", "", "NaN", "1e9"];
  expect(bad.map((value) => wait({ "retry-after": value }))).toEqual(bad.map(() => null));
});

it.each([
  "Range of input length should be [1, 129024]",
  "Input length (160062 tokens) exceeds the maximum allowed length (32762 tokens). Use a shorter input.",
  "invalid params, context window exceeds limit (2013)",
  "prompt token count of 136581 exceeds the limit of 128000",
  "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
  "input (12001 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
])("a too long prompt is recognized by the error's text, with 400 and 500: %s", (message) => {
  for (const status of [400, 500]) {
    expect(failure(status, { message })).toMatchObject({
      kind: "refused",
      code: "context_length_exceeded",
    });
  }
});

it.each([
  "max_tokens must be at least 1",
  "The image exceeds 5 MB",
  "messages must not be empty",
  "Invalid 'input': array too long",
])("an unrelated rejection gets no code for a too long prompt: %s", (message) => {
  expect(failure(400, { message }).code).toBeNull();
});

it.each([
  'Failed to parse tools: Unsupported tool type: {"type":"custom"}; tools = []',
  "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
])(
  "a server's 500 for an unsupported request counts as a rejection, without the server's advice to operators: %s",
  (message) => {
    const refused = failure(500, { message, type: "server_error" });
    expect(refused).toMatchObject({ kind: "refused" });
    expect(refused.message).not.toMatch(/hint|mmproj/);
  },
);

it.each([
  [{ message: "/chat/completions: Invalid model name passed in model=m. Call `/v1/models`" }],
  [{ message: "No connected db.", type: "no_db_connection" }],
  [{ message: "model 'm' not found" }],
])(
  "a server that rejects the gateway's key or model name with 400 or 500 disables its route: %o",
  (error) => {
    for (const status of [400, 500]) expect(failure(status, error).kind).toBe("disabled");
  },
);

it("an error message omits file paths, but not the position of a field", () => {
  expect(cleanMessage("can't open '/srv/models/hf/a.gguf' at /messages/0/content")).toBe(
    "can't open '[removed]' at /messages/0/content",
  );
});
