/** Who is logged in, as `/console/api/session` answers. */
export type Session = {
  readonly kind: "key" | "operator";
  readonly role: "owner" | "admin" | "billing" | "member" | "operator";
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
  readonly member: { readonly id: string } | null;
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
type Line = {
  what: "input" | "cached" | "cache_write" | "cache_write_hour" | "output";
  tokens: number;
  price: number;
  micro: number;
};
export type ListedGeneration = {
  id: string;
  request_id: string;
  created_at: string;
  status: "held" | "settled" | "voided" | "expired" | "refused";
  key_id: string | null;
  external_id: string | null;
  held_micro: number | null;
  cost_micro: number;
  absorbed_micro: number;
  lines: readonly Line[];
  model: string | null;
  provider: string | null;
  region: string | null;
  streamed: boolean | null;
  prompt_tokens: number | null;
  cached_tokens: number | null;
  cache_write_tokens: number | null;
  completion_tokens: number | null;
  reasoning_tokens: number | null;
  first_byte_ms: number | null;
  duration_ms: number | null;
  estimated: boolean | null;
  finish_reason: string | null;
};
export type Hold = {
  id: string;
  since: string;
  granted_micro: number;
  key_id: string;
  external_id: string | null;
};
/** Calls that the OpenAPI document does not describe. */
export type Undocumented = {
  "GET /v1/usage?by": {
    query: { from: string; to: string; group_by: string; after?: string };
    body: undefined;
    answer: {
      data: readonly (Sums & { day?: string; group: string | null })[];
      next_after?: string;
    };
  };
  "GET /v1/generations": {
    query: {
      from?: string;
      to?: string;
      model?: string;
      key_id?: string;
      external_id?: string;
      status?: ListedGeneration["status"];
      limit?: number;
      after?: string;
    };
    body: undefined;
    answer: { generations: readonly ListedGeneration[]; next_after?: string };
  };
  "GET /v1/holds": {
    query: { limit?: number; after?: string };
    body: undefined;
    answer: { holds: readonly Hold[]; next_after?: string };
  };
};
