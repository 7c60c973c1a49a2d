/** Valid bodies to start from, from the smallest to one with every field. */

const HELLO = { model: "sandbox/echo", messages: [{ role: "user", content: "Hello there" }] };
const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "What the weather is",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 } },
      required: ["city"],
    },
    strict: true,
  },
};

export const CHATS: readonly object[] = [
  HELLO,
  { ...HELLO, stream: true, stream_options: { include_usage: true } },
  { ...HELLO, model: "smart", max_tokens: 64, max_completion_tokens: 128, temperature: 0.7, n: 2 },
  {
    ...HELLO,
    top_p: 0.9,
    stop: ["\n", "END"],
    seed: 7,
    frequency_penalty: -0.5,
    presence_penalty: 1.5,
    logit_bias: { "50256": -100, "11": 5 },
    logprobs: true,
    top_logprobs: 2,
    user: "user-42",
    metadata: { trace: "a" },
    service_tier: "auto",
    modalities: ["text"],
    store: false,
    reasoning_effort: "low",
    verbosity: "high",
  },
  { ...HELLO, tools: [WEATHER], tool_choice: "auto", parallel_tool_calls: true },
  {
    ...HELLO,
    tools: [WEATHER],
    tool_choice: { type: "function", function: { name: "get_weather" } },
    stream: true,
  },
  {
    ...HELLO,
    response_format: {
      type: "json_schema",
      json_schema: {
        name: "answer",
        schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
      },
    },
  },
  {
    model: "sandbox/echo",
    messages: [
      { role: "developer", content: "Be short." },
      { role: "system", content: [{ type: "text", text: "Be kind." }], name: "house" },
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        refusal: null,
        reasoning_content: "Hm.",
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "look", arguments: '{"a":1}' } },
          { id: "call_2", type: "custom", custom: { name: "raw", input: "x" } },
        ],
      },
      { role: "tool", content: "a cat", tool_call_id: "call_1" },
      { role: "function", content: null, name: "old" },
      { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
      { role: "user", content: "Grüße, 世界 😀" },
    ],
  },
];

export const EMBEDDINGS: readonly object[] = [
  { model: "sandbox/embed", input: "Hello there" },
  { model: "embeddings/cheapest", input: ["a", "b b", "世界"], dimensions: 8 },
  { model: "sandbox/embed", input: [1, 2, 3], encoding_format: "base64", user: "user-42" },
  { model: "sandbox/embed", input: [[1, 2], [3]], encoding_format: "float", dimensions: 1536 },
];

/** Bodies of free calls. Unique values are inserted at run time. */
export const END_USERS: readonly object[] = [
  { external_id: "user-42" },
  {
    external_id: "ada@example.com",
    monthly_quota_dollars: 10.5,
    daily_quota_dollars: 0.000001,
    alert_threshold: 0.8,
  },
  { external_id: "a/b c", monthly_quota_dollars: null, daily_quota_dollars: 0 },
];
export const END_USER_CHANGES: readonly object[] = [
  { monthly_quota_dollars: 8.2 },
  { daily_quota_dollars: null, alert_threshold: 1 },
];
export const SETTINGS: readonly object[] = [
  {
    default_user_monthly_quota_dollars: 100,
    default_user_daily_quota_dollars: 5.25,
    default_alert_threshold: 0.5,
    low_balance_threshold_dollars: 1,
  },
  { low_balance_threshold_dollars: null },
];
export const KEYS: readonly object[] = [
  { name: "backend" },
  { name: "batch jobs", rpm_limit: 60, scope: "regional" },
  { name: "both", rpm_limit: 1000, scope: "global" },
];
export const KEY_CHANGES: readonly object[] = [{ name: "renamed", rpm_limit: 10 }];
export const ORGANIZATION_CHANGES: readonly object[] = [
  { name: "Acme & Söhne" },
  { name: "Acme", slug: "acme-2" },
  { rpm_limit: 100, status: "active" },
  { rpm_limit: null },
];
export const NEW_ORGANIZATIONS: readonly object[] = [
  {
    name: "Acme",
    slug: "acme-3",
    owner_email: "owner@example.com",
    is_personal: false,
    key_scope: "global",
    rpm_limit: 100,
  },
];
export const MEMBERS: readonly object[] = [{ email: "ada@example.com", role: "billing" }];
export const CREDITS: readonly object[] = [
  { amount_micro: 1_000_000, reference: "invoice 7" },
  { amount_micro: -5, reference: "correction" },
];

const ID = "0OsAZQP2abcdefghijklmnop";
const HASH = "0123456789abcdef".repeat(4);
/** A generation as logged and as pasted into `settle`. */
export const GENERATION = {
  model: "sandbox/echo",
  provider: "sandbox",
  region: "eu",
  keyId: `key_${ID}`,
  streamed: false,
  usage: { input: 12, cacheRead: 4, cacheWrite: 0, output: 3, reasoning: 0 },
  price: { input: 1_000_000, cached: 1_000_000, cacheWrite: 1_000_000, output: 2_000_000 },
  firstByteMs: 20,
  durationMs: 120,
  estimated: false,
  finishReason: "stop",
};
export const UNSAVED: readonly object[] = [
  { request_id: `req_${ID}`, cost_micro: 22, generation: GENERATION },
];

export const AUTHORIZE: readonly object[] = [
  { v: 1, key_hash: HASH, hold: null },
  {
    v: 1,
    key_hash: HASH,
    hold: {
      id: `req_${ID}`,
      least: 10,
      sure: 20,
      most: 100,
      has_cap: false,
      tokens: { prompt: 1, least: 2, most: 3 },
      model: { sent: "smart", id: "acme/one" },
      user: "user-42",
      idempotency: { name: HASH, body: HASH },
    },
  },
];
export const FORWARDS: readonly object[] = [
  {
    v: 1,
    method: "POST",
    path: "/v1/users",
    query: "?a=1",
    headers: { "content-type": "application/json", "idempotency-key": "one" },
    body: "eyJleHRlcm5hbF9pZCI6ImEifQ==",
    caller_key_hash: HASH,
  },
  {
    v: 1,
    method: "GET",
    path: "/v1/users/a%2Fb",
    query: "",
    headers: {},
    body: null,
    caller_key_hash: HASH,
  },
];
export const FORWARD_ANSWERS: readonly object[] = [
  { ok: true, status: 200, headers: { "content-type": "application/json" }, body: "{}" },
  { ok: true, status: 405, headers: { allow: "GET, HEAD", "x-should-retry": "false" }, body: "" },
];
const SHORTAGE = { heldMicro: 2, requiredMicro: 2, onlyHolds: true };
const LEFT = { ...SHORTAGE, leftMicro: 1, resetsAt: 1e12 };
export const AUTHORIZE_ANSWERS: readonly object[] = [
  { ok: true, org_id: "o", key_id: "k", member_id: "m", rpm_limit: 60, granted: 100 },
  { ok: true, granted: 100, tokens: { granted: 5, limit: 9, remaining: 4, resetMs: 60_000 } },
  { ok: false, failure: { kind: "balance_too_low", balanceMicro: 3, ...SHORTAGE } },
  { ok: false, failure: { kind: "quota_exceeded", period: "day", quotaMicro: 9, ...LEFT } },
  { ok: false, failure: { kind: "key_budget_exceeded", period: null, budgetMicro: 9, ...LEFT } },
  {
    ok: false,
    failure: { kind: "tokens_limited", limit: 9, remaining: 1, required: 2, retryAfterMs: 5 },
  },
  {
    ok: false,
    failure: { kind: "rate_limited", scope: "organization", limit: 5, retryAfterMs: 100 },
  },
  { ok: false, failure: { kind: "idempotency_replay", made: "generation", id: `req_${ID}` } },
];
const OUTCOME = { hold_id: `req_${ID}`, org_id: "5f6b2c1e-0d3a-4c8e-9b7f-1a2b3c4d5e6f" };
export const OUTCOMES: readonly object[] = [
  {
    ...OUTCOME,
    kind: "settle",
    cost_micro: 22,
    generation: {
      model: "sandbox/echo",
      provider: "sandbox",
      key_id: `key_${ID}`,
      external_id: null,
      streamed: true,
      usage: { input: 12, cache_read: 4, cache_write: 0, output: 3, reasoning: 0 },
      price: { input: 1, cached: 1, cache_write: 1, output: 2 },
      first_byte_ms: null,
      duration_ms: 12.5,
      estimated: true,
      finish_reason: null,
    },
  },
  { ...OUTCOME, kind: "void" },
];
export const REVOCATIONS: readonly object[] = [{ key_hash: HASH, revoked_at: 1_760_000_000_000 }];

const MESSAGE = {
  model: "sandbox/echo",
  max_tokens: 64,
  messages: [{ role: "user", content: "Hi" }],
};
const LOOK = { name: "look", description: "Looks", input_schema: { type: "object" } };

/** Bodies of POST /v1/messages. */
export const MESSAGES: readonly object[] = [
  MESSAGE,
  {
    ...MESSAGE,
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
    stream: true,
    temperature: 0.5,
    top_k: 4,
    stop_sequences: ["END"],
    metadata: { user_id: "someone" },
    service_tier: "auto",
  },
  {
    ...MESSAGE,
    tools: [LOOK, { type: "web_search_20260318", name: "web_search" }],
    tool_choice: { type: "tool", name: "look", disable_parallel_tool_use: true },
    thinking: { type: "enabled", budget_tokens: 1024 },
    output_config: { effort: "high" },
    messages: [
      { role: "user", content: [{ type: "text", text: "Look." }] },
      {
        role: "assistant",
        content: [
          {
            type: "thinking",
            thinking: "Hm.",
            signature: "tk1.eyJkZXRhaWxzIjpbeyJ0eXBlIjoiYSJ9XSwiZXh0cmFzIjp7fX0.lczv9f828gce",
          },
          { type: "redacted_thinking", data: "zz" },
          { type: "text", text: "I look." },
          { type: "tool_use", id: "toolu_1", name: "look", input: { at: 1 } },
        ],
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "toolu_1",
            content: [{ type: "text", text: "seen" }],
            is_error: true,
          },
          {
            type: "document",
            title: "Law",
            source: { type: "text", media_type: "text/plain", data: "Be good." },
          },
          {
            type: "search_result",
            source: "u",
            title: "t",
            content: [{ type: "text", text: "c" }],
          },
        ],
      },
      { role: "system", content: "Now." },
    ],
  },
];

const RESPONSE = { model: "sandbox/echo", input: "Hi" };
const FIND = { type: "function", name: "find", parameters: { type: "object" }, strict: true };

/** Bodies of POST /v1/responses. */
export const RESPONSES: readonly object[] = [
  RESPONSE,
  {
    ...RESPONSE,
    instructions: "Be brief.",
    stream: true,
    store: true,
    max_output_tokens: 64,
    temperature: 0.5,
    top_logprobs: 2,
    include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
    reasoning: { effort: "high", summary: "auto" },
    text: {
      verbosity: "low",
      format: { type: "json_schema", name: "x", schema: { type: "object" }, strict: true },
    },
    metadata: { a: "b" },
    user: "ann",
    prompt_cache_key: "k",
    client_metadata: { session: "s" },
  },
  {
    ...RESPONSE,
    tools: [
      FIND,
      {
        type: "custom",
        name: "patch",
        format: { type: "grammar", syntax: "lark", definition: "a" },
      },
      { type: "namespace", name: "files", tools: [FIND, { type: "custom", name: "write" }] },
      { type: "web_search" },
    ],
    tool_choice: {
      type: "allowed_tools",
      mode: "auto",
      tools: [{ type: "function", name: "find" }],
    },
    parallel_tool_calls: true,
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Look." }] },
      { type: "additional_tools", role: "developer", tools: [FIND] },
      {
        role: "user",
        content: [
          { type: "input_text", text: "a" },
          { type: "input_file", filename: "a.txt", file_data: "data:text/plain;base64,SGk=" },
        ],
      },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "tk1.e30.x" },
      { role: "assistant", content: [{ type: "output_text", text: "b" }], phase: "commentary" },
      { type: "function_call", call_id: "c1", name: "find", arguments: "{}" },
      { type: "custom_tool_call", call_id: "c2", name: "write", namespace: "files", input: "x" },
      {
        type: "custom_tool_call_output",
        call_id: "c2",
        output: [{ type: "input_text", text: "y" }],
      },
      { type: "function_call_output", call_id: "c1", output: '[{"type":"input_text","text":"z"}]' },
      { type: "web_search_call", id: "ws_1", status: "completed" },
      { type: "agent_message", content: [{ type: "input_text", text: "sub" }] },
    ],
  },
];
