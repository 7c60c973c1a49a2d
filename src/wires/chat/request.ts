import { refusal } from "../../core/conversation.ts";
import { tellLeft } from "../../core/dropped.ts";
import { isObject } from "../../core/json-value.ts";
import type {
  ChatCall,
  EmbeddingsCall,
  JsonObject,
  ProviderCall,
  ProviderFailure,
} from "../../core/provider.ts";
import { forwarded } from "./forwarded.ts";
import { plainBody } from "./plain-body.ts";
import type { Profile, Rule } from "./profile.ts";

/** The body to send, or why the host cannot answer the call. */
export type UpstreamRequest = { readonly body: JsonObject } | ProviderFailure;

/**
 * A chat as it is sent upstream: the profile's fields, never null ones, as its rules and names have them,
 * with our own model, cap and stream flags.
 */
export function chatRequest(call: ChatCall, profile: Profile): UpstreamRequest {
  const { oneChoice, plain, chatFields, chatExtras, implied = [] } = profile;
  if (chatFields.size === 0) return UNSUPPORTED;
  if (oneChoice === true && (call.body.n ?? 1) > 1) {
    return refusal("This model gives one choice only: 'n' must be 1.", "n");
  }
  const source =
    plain === undefined ? { body: call.body } : plainBody(call.body, plain, call.upstreamId);
  if (!("body" in source)) return source;
  const body: Record<string, unknown> = { model: call.upstreamId, ...chatExtras };
  addFields(body, source.body, { call, profile, allowed: chatFields });
  for (const { models, beside, fields } of implied) {
    const holds = body[beside] !== undefined && models.test(call.upstreamId);
    if (holds) Object.assign(body, { ...fields, ...body });
  }
  body[profile.capField] = call.cap;
  if (call.stream) Object.assign(body, streamFlags(profile));
  return { body };
}

/** An embeddings request likewise. */
export function embeddingsRequest(call: EmbeddingsCall, profile: Profile): UpstreamRequest {
  const { embeddingFields: allowed, embeddingExtras } = profile;
  if (allowed.size === 0) return UNSUPPORTED;
  const body = { model: call.upstreamId, ...embeddingExtras };
  addFields(body, call.body, { call, profile, allowed });
  return { body };
}

const UNSUPPORTED: ProviderFailure = { kind: "disabled", reason: "unsupported" };

type Adding = {
  readonly call: ProviderCall;
  readonly profile: Profile;
  readonly allowed: ReadonlySet<string>;
};

function addFields(
  body: Record<string, unknown>,
  source: JsonObject,
  { call, profile, allowed }: Adding,
): void {
  const rules = rulesFor(call, profile);
  const left = new Set<string>();
  const isPlain = profile.plain !== undefined; // then messages and tools are as they must be
  for (const [field, value] of Object.entries(source)) {
    const set = allowed.has(field) ? ruled(field, value ?? null, rules) : null;
    if (set === null) left.add(field);
    if (set === null) continue;
    if (set !== value && isObject(set)) Object.assign(body, set);
    else body[profile.renamed?.[field] ?? field] = isPlain ? set : forwarded(field, set, profile);
  }
  tellLeft(call, (field) => !left.has(field));
}

function streamFlags({ streamOptions }: Profile): JsonObject {
  return streamOptions === null
    ? { stream: true }
    : { stream: true, stream_options: streamOptions };
}

function rulesFor({ upstreamId, body }: ProviderCall, { rules = [] }: Profile): readonly Rule[] {
  return rules.filter(
    ({ models, unless }) =>
      models?.test(upstreamId) !== false && (unless === undefined || body[unless[0]] !== unless[1]),
  );
}

/** What is sent for a field: itself, another value, an object of other fields, or nothing (null). */
function ruled(field: string, value: unknown, rules: readonly Rule[]): unknown {
  const rule = rules.find(({ fields }) => fields.includes(field));
  if (rule === undefined) return value;
  if (rule.values === undefined) return null;
  const isNamed = typeof value === "string" && Object.hasOwn(rule.values, value);
  return isNamed ? rule.values[value] : value;
}
