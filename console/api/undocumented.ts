/** Who is logged in, as `/console/api/session` answers. */
export type Session = {
  readonly kind: "key" | "operator";
  readonly role: "owner" | "admin" | "billing" | "member" | "operator" | null;
  readonly organization: {
    readonly id: string;
    readonly name: string;
    readonly slug: string;
  } | null;
  readonly key: {
    readonly id: string;
    readonly name: string;
    readonly prefix: string;
    readonly limited: boolean;
  } | null;
  readonly member: { readonly id: string; readonly email?: string } | null;
  readonly region: string;
  readonly expires_at: string;
};

type Sums = {
  requests: number;
  prompt_tokens: number;
  cached_tokens: number;
  completion_tokens: number;
  cost_micro: number;
};
export type UsageCell = Sums & { day: string; group: string | null };
export type Receipt = {
  id: string;
  request_id: string;
  created_at: string;
  model: string;
  provider: string;
  region: string;
  key_id: string;
  external_id: string | null;
  streamed: boolean;
  prompt_tokens: number;
  cached_tokens: number;
  cache_write_tokens: number;
  completion_tokens: number;
  reasoning_tokens: number;
  cost_micro: number;
  price: { input: number; cached: number; cache_write: number; output: number };
  first_byte_ms: number | null;
  duration_ms: number;
  estimated: boolean;
  finish_reason: string | null;
};

/** Calls that the OpenAPI document does not describe. */
export type Undocumented = {
  "GET /v1/usage?by": {
    query: { from: string; to: string; group_by: string };
    body: undefined;
    answer: { data: readonly UsageCell[] };
  };
  "GET /v1/generations": {
    query: {
      from?: string;
      to?: string;
      model?: string;
      key_id?: string;
      external_id?: string;
      status?: string;
      limit?: number;
      after?: string;
    };
    body: undefined;
    answer: { data: readonly Receipt[]; next_after?: string };
  };
};
