import { refusal } from "../../core/conversation.ts";
import { tellLeft } from "../../core/dropped.ts";
import { isObject } from "../../core/json-value.ts";
import type { JsonObject, ProviderCall, ProviderFailure } from "../../core/provider.ts";
import { forwarded } from "./forwarded.ts";
import { plainBody } from "./plain-body.ts";
import type { Profile, Rule } from "./profile.ts";

/** The body to send, or why the host cannot answer the call. */
export type UpstreamRequest = { readonly body: JsonObject } | ProviderFailure;

/**
 * The body sent upstream: the profile's fields, never null ones, as its rules and names have them,
 * with our own model, cap and stream flags.
 */
export function upstreamRequest(call: ProviderCall, profile: Profile): UpstreamRequest {
  const source = sourceOf(call, profile);
  if (!("body" in source)) return source;
  const isChat = call.kind === "chat";
  const body: Record<string, unknown> = {
    model: call.upstreamId,
    ...(isChat ? profile.chatExtras : profile.embeddingExtras),
  };
  addFields(body, source.body, call, profile);
  for (const { models, beside, fields } of profile.implied ?? []) {
    const holds = body[beside] !== undefined && models.test(call.upstreamId);
    if (holds) Object.assign(body, { ...fields, ...body });
  }
  if (call.cap !== null) body[profile.capField] = call.cap;
  if (isChat && call.stream) Object.assign(body, streamFlags(profile));
  return { body };
}

function addFields(
  body: Record<string, unknown>,
  source: JsonObject,
  call: ProviderCall,
  profile: Profile,
): void {
  const allowed = fieldsFor(call, profile);
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

/** The client's request, as a plain style wants it; or why it cannot be sent to this host. */
function sourceOf(call: ProviderCall, profile: Profile): UpstreamRequest {
  const { body, kind, upstreamId } = call;
  if (fieldsFor(call, profile).size === 0) return { kind: "disabled", reason: "unsupported" };
  if (profile.oneChoice === true && Number(body["n"] ?? 1) > 1) {
    return refusal("This model gives one choice only: 'n' must be 1.", "n");
  }
  const { plain } = profile;
  return kind === "chat" && plain !== undefined ? plainBody(body, plain, upstreamId) : { body };
}

function fieldsFor({ kind }: ProviderCall, profile: Profile): ReadonlySet<string> {
  return kind === "chat" ? profile.chatFields : profile.embeddingFields;
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
