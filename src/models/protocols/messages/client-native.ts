import { success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { isObject, numberOf, objectOf, removeNulls, textOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import {
  UniqueToolCallIds,
  AcceptedToolCallIds,
  WORD_CHARACTER_ID_FORMAT,
} from "../../core/tool-calls.ts";
import type { NativePartCountRule, NativePartCountRules } from "../../core/prompt-size.ts";
import {
  NATIVE_BLOCK_FIELDS,
  isForwardedBeta,
  NATIVE_MESSAGE_FIELDS,
  NATIVE_REQUEST_FIELDS,
  UNCONVERTIBLE_FIELDS,
} from "./client-native-fields.ts";
import type { NativeFieldRules, NativeFieldRule } from "./client-native-fields.ts";
import type { CountTokensBody, MessagesMessage, MessagesBody } from "./client-request.ts";
import { getToolKind, removeServerTools } from "./client-tools.ts";
import { isSerializedThoughts } from "../../core/stored-thoughts.ts";

type NativeRequest = {
  readonly body: JsonObject;
  readonly betas: readonly string[];
  readonly dropped: ReadonlySet<string>;
  readonly unconverted: ReadonlySet<string>;
  readonly marksCache: boolean;
  readonly weights: NativePartCountRules;
  readonly outputLeast: number;
};

const UNREPORTED_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "max_tokens",
  "stream",
  "metadata", // Client telemetry is never forwarded.
  "output_format",
  "service_tier",
  "speed",
  "container",
  "mcp_servers",
  "compaction",
  "fallbacks",
  "fallback_credit_token",
  "thread",
  "billing_policy",
]);

export function listUnknownMessagesFields(body: MessagesBody): readonly string[] {
  return Object.keys(body)
    .filter(
      (field) => !UNREPORTED_FIELDS.has(field) && !Object.hasOwn(NATIVE_REQUEST_FIELDS, field),
    )
    .filter((field) => (body[field] ?? null) !== null)
    .slice(0, REPORTED_NAMES_MAX);
}

export function parseBetaHeader(header: string | undefined): readonly string[] {
  const values = (header ?? "").split(",").map((value) => value.trim());
  return [...new Set(values)].filter(isForwardedBeta);
}

/**
 * Returns a request in Claude's own format. The adapter adds model, cap and stream. Returns 400 if
 * the client forces a tool without a price in the catalog.
 */
export function toClaudeNativeRequest(
  body: MessagesBody | CountTokensBody,
  betas: readonly string[],
): Result<NativeRequest> {
  const fieldPicker = new FieldPicker(betas);
  const tools = removeServerTools(body, fieldPicker.dropped);
  if (!tools.ok) return tools;
  const { model: _, messages, ...otherFields } = body;
  const config = {
    ...(body.output_format && { format: body.output_format }),
    ...body.output_config,
  };
  const source: JsonObject = {
    ...otherFields,
    tools: tools.value.length === 0 ? null : tools.value,
    ...(tools.value.length === 0 && { tool_choice: null }),
    output_config: Object.keys(config).length === 0 ? null : config,
  };
  const nativeBody = {
    // A request for 0 tokens only warms the cache.
    ...(body["max_tokens"] === 0 && { max_tokens: 0 }),
    messages: messages.map((message) => fieldPicker.message(message)).filter(hasContent),
    ...removeNulls(fieldPicker.fields(source, NATIVE_REQUEST_FIELDS, "")),
  };
  const { dropped, unconverted, marksCache, weights } = fieldPicker;
  return success({
    body: nativeBody,
    betas,
    dropped,
    unconverted,
    marksCache,
    weights,
    outputLeast: outputTokensMin(objectOf(body.thinking)),
  });
}

function outputTokensMin({ type, budget_tokens: budget }: JsonObject): number {
  return type === "enabled" ? (numberOf(budget) ?? 0) + 1 : 0;
}

function hasContent({ content }: JsonObject): boolean {
  return typeof content === "string" || Array.isArray(content) ? content.length > 0 : true;
}

const PATHS_WITHOUT_TYPE: ReadonlySet<string> = new Set(["", "messages."]);
const REPORTED_NAMES_MAX = 100;

class FieldPicker {
  readonly dropped = new Set<string>();
  readonly unconverted = new Set<string>();
  marksCache = false;
  readonly weights = new Map<object, NativePartCountRule>();
  readonly #betas: ReadonlySet<string>;
  readonly #ids = new AcceptedToolCallIds(WORD_CHARACTER_ID_FORMAT);
  readonly #callPairs = new UniqueToolCallIds();

  constructor(betas: readonly string[]) {
    this.#betas = new Set(betas);
  }

  message({ role, ...fields }: MessagesMessage): JsonObject {
    if (role === "assistant") this.#callPairs.beginTurn();
    return { role, ...this.fields(fields, NATIVE_MESSAGE_FIELDS, "messages.") };
  }

  fields(source: JsonObject, rules: NativeFieldRules, prefix: string): JsonObject {
    const keptFields: [string, unknown][] = [];
    for (const [field, value] of Object.entries(source)) {
      const rule = Object.hasOwn(rules, field) ? rules[field] : undefined;
      const picked =
        field === "type" && !PATHS_WITHOUT_TYPE.has(prefix)
          ? this.#pickValue(value, "word", prefix + field)
          : rule !== undefined && this.#pickValue(value, rule, prefix + field);
      if (picked !== false) {
        keptFields.push([field, picked.value]);
        this.#recordField(field, value, prefix);
      } else if (prefix !== "" || !UNREPORTED_FIELDS.has(field)) {
        this.#drop(prefix + field, value);
      }
    }
    return Object.fromEntries(keptFields);
  }

  #recordField(field: string, value: unknown, prefix: string): void {
    if (value === null || value === undefined) return;
    this.marksCache ||= field === "cache_control";
    if (UNCONVERTIBLE_FIELDS.has(prefix + field)) this.unconverted.add(prefix + field);
  }

  #drop(name: string, value: unknown): void {
    if (value !== null && value !== undefined && this.dropped.size < REPORTED_NAMES_MAX) {
      this.dropped.add(name);
    }
  }

  #pickValue(
    value: unknown,
    rule: NativeFieldRule,
    path: string,
  ): { readonly value: unknown } | false {
    if (value === null || value === undefined) return { value };
    if (typeof rule === "string") return this.#pickSimple(value, rule, path);
    if ("beta" in rule) {
      return this.#betas.has(rule.beta) && this.#pickValue(value, rule.rule, path);
    }
    if ("list" in rule) {
      return Array.isArray(value) && { value: this.#pickList(value, rule.list, path) };
    }
    if (!isObject(value)) return false;
    const fields = fieldsFor(value, rule);
    return fields !== undefined && { value: this.#pickObject(value, fields, `${path}.`) };
  }

  #pickSimple(
    value: unknown,
    rule: NativeFieldRule & string,
    path: string,
  ): { readonly value: unknown } | false {
    if (rule === "json") return { value };
    if (rule === "word") return typeof value !== "object" && { value };
    if (rule === "content") return this.#pickContent(value, path);
    if (typeof value !== "string") return false;
    const id = path.endsWith(".id")
      ? this.#callPairs.addCall(value)
      : this.#callPairs.addResult(value);
    return { value: this.#ids.idFor(id) };
  }

  #pickList(values: readonly unknown[], rule: NativeFieldRule, path: string): unknown[] {
    return values.flatMap((value) => {
      const picked = this.#pickValue(value, rule, path);
      if (picked === false) this.#drop(path, value);
      return picked === false ? [] : [picked.value];
    });
  }

  #pickObject(value: JsonObject, rules: NativeFieldRules, path: string): JsonObject {
    const pickedFields = this.fields(value, rules, path);
    if (path === "tools." && getToolKind(value) !== "custom") {
      this.weights.set(pickedFields, "known_tool");
    }
    return pickedFields;
  }

  #pickContent(value: unknown, path: string): { readonly value: unknown } | false {
    if (typeof value === "string") return { value };
    if (Array.isArray(value)) {
      return { value: value.filter(isObject).flatMap((block) => this.#pickBlock(block)) };
    }
    const [block] = isObject(value) ? this.#pickBlock(value) : [];
    if (block === undefined) this.#drop(path, value);
    return block !== undefined && { value: block };
  }

  /** Converts a block. Drops empty texts and unsigned thoughts, for which Claude returns 400. */
  #pickBlock(block: JsonObject): JsonObject[] {
    const type = textOf(block["type"]);
    const rules = Object.hasOwn(NATIVE_BLOCK_FIELDS, type) ? NATIVE_BLOCK_FIELDS[type] : undefined;
    if (rules === undefined) {
      this.#drop(type, block);
      return [];
    }
    if (type === "text" && block["text"] === "") return [];
    if (type === "thinking" && !isSigned(block)) return [];
    const pickedFields = this.fields(block, rules, `${type}.`);
    const { source } = pickedFields;
    if (isObject(source)) this.#recordWeight(type, source);
    return [pickedFields];
  }

  #recordWeight(type: string, source: JsonObject): void {
    const base64Field = source["type"] === "base64" ? "data" : null;
    if (type === "image") this.weights.set(source, { image: base64Field });
    else if (base64Field !== null) this.weights.set(source, { pdf: base64Field });
  }
}

function fieldsFor(
  { type }: JsonObject,
  rule: Extract<NativeFieldRule, { object: NativeFieldRules } | { types: unknown }>,
): NativeFieldRules | undefined {
  if ("object" in rule) return rule.object;
  const typeName = textOf(type);
  return Object.hasOwn(rule.types, typeName) ? rule.types[typeName] : undefined;
}

function isSigned({ signature }: JsonObject): boolean {
  return typeof signature === "string" && signature !== "" && !isSerializedThoughts(signature);
}
