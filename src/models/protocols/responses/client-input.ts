import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { fromBase64 } from "../../core/base64.ts";
import { PDF_DATA_PREFIX } from "../../core/core-request.ts";
import { isObject, isTyped, listOf, textOf } from "../../core/json-value.ts";
import { listReader, objectReader } from "../../core/shape.ts";
import { flatToolName } from "../../core/namespaces.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ChatMessage } from "../../core/core-request.ts";
import { isInputPart } from "./client-request.ts";
import type { InputItem, InputPart } from "./client-request.ts";
import { unsealThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import { customArguments } from "./client-tools.ts";

type Assistant = Extract<ChatMessage, { role: "assistant" }>;
type User = Extract<ChatMessage, { role: "user" }>;
type UserPart = Exclude<User["content"], string>[number];
type Call = NonNullable<Assistant["tool_calls"]>[number];

export type ConvertedInput = {
  readonly messages: readonly ChatMessage[];
  /** Types of the dropped items, such as reasoning that only its own provider can read. */
  readonly left: ReadonlySet<string>;
  readonly places: ReadonlyMap<number, string>;
};

/**
 * Converts items to messages. Consecutive assistant items become one message, followed by the
 * outputs of its calls. Returns 400 for calls and outputs that don't match, stored files and
 * images, and files by URL.
 */
export function chatMessagesOfItems(items: readonly InputItem[]): Result<ConvertedInput> {
  const outputs = outputsOf(items);
  if (!outputs.ok) return outputs;
  return new ItemReader(outputs.value).read(items);
}

type Output = Extract<InputItem, { type: "function_call_output" | "custom_tool_call_output" }>;
type CalledTool = Pick<
  Extract<InputItem, { type: "function_call" }>,
  "call_id" | "name" | "namespace"
>;
type OutputAtPath = { readonly item: Output; readonly at: string };

/** Tool outputs by call ID, in order. Some hosts use the same ID again in a later turn. */
type Outputs = ReadonlyMap<string, readonly OutputAtPath[]>;

function outputsOf(items: readonly InputItem[]): Result<Outputs> {
  const calls = new Map<string, number>();
  for (const item of items) {
    if (item.type !== "function_call" && item.type !== "custom_tool_call") continue;
    calls.set(item.call_id, (calls.get(item.call_id) ?? 0) + 1);
  }
  const outputs = new Map<string, OutputAtPath[]>();
  for (const [index, item] of items.entries()) {
    if (item.type !== "function_call_output" && item.type !== "custom_tool_call_output") continue;
    const at = `input[${index}]`;
    const before = outputs.get(item.call_id) ?? [];
    const most = calls.get(item.call_id) ?? 0;
    if (before.length > 0 && before.length >= most) {
      return invalid(`The call '${shortenId(item.call_id)}' has two outputs.`, `${at}.call_id`);
    }
    outputs.set(item.call_id, [...before, { item, at }]);
  }
  return success(outputs);
}

class AssistantTurn {
  text: string | null = null;
  refusal: string | null = null;
  readonly calls: Call[] = [];
  readonly outputs: OutputAtPath[] = [];
  reasoning = "";
  readonly details: JsonObject[] = [];
  readonly extras = new Map<string, JsonObject>();
}

class ItemReader {
  readonly #messages: ChatMessage[] = [];
  readonly #left = new Set<string>();
  readonly #outputs: Outputs;
  readonly #places = new Map<number, string>();
  readonly #called = new Map<string, number>();
  #turn: AssistantTurn | null = null;

  constructor(outputs: Outputs) {
    this.#outputs = outputs;
  }

  read(items: readonly InputItem[]): Result<ConvertedInput> {
    for (const [index, item] of items.entries()) {
      const refused = this.#item(item, `input[${index}]`);
      if (refused !== null) return refused;
    }
    const refused = this.#endTurn();
    if (refused !== null) return refused;
    for (const [id, [placed]] of this.#outputs) {
      if (placed === undefined || this.#called.has(id)) continue;
      return invalid(
        `No tool call found for the output of '${shortenId(id)}'.`,
        `${placed.at}.call_id`,
      );
    }
    return success({ messages: this.#messages, left: this.#left, places: this.#places });
  }

  #item(item: InputItem, at: string): Refusal | null {
    // oxlint-disable-next-line switch-exhaustiveness-check -- others aren't converted
    switch (item.type) {
      case "message":
        return this.#message(item, at);
      case "function_call":
        return this.#call(item, item.arguments);
      case "custom_tool_call":
        return this.#call(item, customArguments(item.input));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#called.has(item.call_id) ? this.#endTurn() : null;
      case "reasoning":
        this.#reasoning(item);
        return null;
      case "agent_message":
        return this.#spoken("user", textOfAgentMessage(item));
      default:
        return this.#beside(item.type);
    }
  }

  #beside(type: InputItem["type"]): null {
    if (type !== "additional_tools") this.#left.add(type);
    return null;
  }

  #message(item: Extract<InputItem, { type: "message" }>, at: string): Refusal | null {
    const { role, content } = item;
    if (role === "assistant") return this.#assistant(content, at);
    if (typeof content === "string") return this.#spoken(role, content);
    if (role !== "user") {
      const texts = textsOf(content, at);
      return texts.ok ? this.#spoken(role, texts.value.join("\n")) : texts;
    }
    const parts = userParts(content, `${at}.content`);
    if (!parts.ok) return parts;
    const refused = this.#endTurn();
    if (refused !== null) return refused;
    const [first, second] = parts.value;
    if (first === undefined) this.#messages.push({ role, content: "" });
    else if (first.type === "text" && second === undefined) {
      this.#messages.push({ role, content: first.text });
    } else {
      this.#places.set(this.#messages.length, `${at}.content`);
      this.#messages.push({ role, content: [...parts.value] });
    }
    return null;
  }

  #spoken(role: "user" | "system" | "developer", content: string): Refusal | null {
    const refused = this.#endTurn();
    if (refused === null) this.#messages.push({ role, content });
    return refused;
  }

  #assistant(content: string | readonly InputPart[], at: string): Refusal | null {
    if (this.#turn !== null && (this.#turn.text ?? this.#turn.refusal) !== null) {
      const refused = this.#endTurn();
      if (refused !== null) return refused;
    }
    const turn = (this.#turn ??= new AssistantTurn());
    if (typeof content === "string") {
      turn.text = content;
      return null;
    }
    const refusals = content.flatMap((part) => (part.type === "refusal" ? [part.refusal] : []));
    if (refusals.length > 0) turn.refusal = refusals.join("");
    const texts = textsOf(
      content.filter((part) => part.type !== "refusal"),
      at,
    );
    if (!texts.ok) return texts;
    if (texts.value.length > 0 || refusals.length === 0) turn.text = texts.value.join("");
    return null;
  }

  #call({ call_id: id, name, namespace }: CalledTool, args: string): Refusal | null {
    const number = this.#called.get(id) ?? 0;
    const output = this.#outputs.get(id)?.[number];
    if (output === undefined) {
      return invalid(`No tool output found for the call '${shortenId(id)}'.`, "input");
    }
    this.#called.set(id, number + 1);
    const turn = (this.#turn ??= new AssistantTurn());
    const called = { name: flatToolName(namespace ?? null, name), arguments: args };
    turn.calls.push({ id, type: "function", function: called });
    turn.outputs.push(output);
    return null;
  }

  #reasoning({ encrypted_content: encrypted, summary }: Reasoning): void {
    const kept = encrypted ? unsealThoughts(encrypted) : toReadableThoughts(summary);
    if (kept === null) {
      this.#left.add("reasoning");
      return;
    }
    const turn = (this.#turn ??= new AssistantTurn());
    turn.reasoning += kept.text;
    for (const detail of kept.details) turn.details.push(detail);
    for (const [id, extra] of Object.entries(kept.extras)) turn.extras.set(id, extra);
  }

  #endTurn(): Refusal | null {
    const turn = this.#turn;
    this.#turn = null;
    if (turn === null) return null;
    if (turn.text === null && turn.refusal === null && turn.calls.length === 0) return null;
    this.#messages.push(messageOf(turn));
    const shownParts: UserPart[] = [];
    for (const placed of turn.outputs) {
      const id = placed.item.call_id;
      const parts = outputParts(placed);
      if (!parts.ok) return parts;
      const images = parts.value.filter((part) => part.type !== "text");
      const texts = parts.value.flatMap((part) => (part.type === "text" ? [part.text] : []));
      if (images.length > 0) {
        shownParts.push({ type: "text", text: `Output of the call ${id}:` }, ...images);
        if (texts.length === 0) texts.push("The output is shown in the next message.");
      }
      this.#messages.push({ role: "tool", tool_call_id: id, content: texts.join("\n") });
    }
    if (shownParts.length > 0) this.#messages.push({ role: "user", content: shownParts });
    return null;
  }
}

type Reasoning = Extract<InputItem, { type: "reasoning" }>;

const summaryParts = listReader(objectReader({ text: textOf }));

function toReadableThoughts(summary: unknown): StoredThoughts | null {
  const text = summaryParts(summary)
    .map((part) => part.text)
    .join("\n\n");
  return text === "" ? null : { details: [], extras: {}, text };
}

function messageOf({ text, refusal, calls, reasoning, details, extras }: AssistantTurn): Assistant {
  const namedCalls = calls.map((call) => {
    const extra = extras.get(call.id);
    return extra === undefined ? call : { ...call, extra_content: extra };
  });
  return {
    role: "assistant",
    content: text,
    ...(refusal !== null && { refusal }),
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(details.length > 0 && {
      reasoning_details: details.filter(isTyped),
    }),
    ...(namedCalls.length > 0 && { tool_calls: namedCalls }),
  };
}

/**
 * An output can be a text with a JSON list of parts, because Codex sends images this way
 * (view_image).
 */
function outputParts({ item, at }: OutputAtPath): Result<readonly UserPart[]> {
  const { output } = item;
  const parts = typeof output === "string" ? partsInText(output) : output;
  if (parts !== null) return userParts(parts, `${at}.output`);
  return success([{ type: "text", text: textOf(output) }]);
}

export function partsInText(text: string): readonly InputPart[] | null {
  if (!text.startsWith("[")) return null;
  try {
    const value: unknown = JSON.parse(text);
    const parts = listOf(value);
    return parts.length > 0 && parts.every(isPart) ? parts : null;
  } catch {
    return null;
  }
}

function isPart(value: unknown): value is InputPart {
  if (!isInputPart(value)) return false;
  return value.type === "input_image" ? Boolean(value.image_url) : value.type === "input_text";
}

function userParts(parts: readonly InputPart[], at: string): Result<readonly UserPart[]> {
  const converted: UserPart[] = [];
  for (const [index, part] of parts.entries()) {
    const one = userPart(part, `${at}[${index}]`);
    if (!one.ok) return one;
    converted.push(one.value);
  }
  return success(converted);
}

function userPart(part: InputPart, at: string): Result<UserPart> {
  if (part.type === "refusal") return success({ type: "text", text: part.refusal });
  if (part.type === "input_file") return filePartOf(part, at);
  if (part.type !== "input_image") return success({ type: "text", text: part.text });
  const { image_url: url, detail } = part;
  if (!url && part.file_id) return invalid(NO_FILES, `${at}.file_id`);
  if (!url) return badImage(NO_FILES, `${at}.image_url`);
  return success({
    type: "image_url",
    image_url: { url, ...(detail && { detail: detail === "original" ? "high" : detail }) },
  });
}

/**
 * The code for a bad image. By this code and the end of `param`, Codex drops the image from its
 * history.
 */
const BAD_IMAGE = "invalid_value";

export function codeOf(param: string): string | null {
  return param.endsWith(".image_url") ? BAD_IMAGE : null;
}

function badImage(message: string, param: string): Refusal {
  return refuse({ kind: "invalid_request", message, param, code: BAD_IMAGE });
}

const NO_FILES = "Files are not stored here. Send the file itself as a data URL.";
const ONLY_TEXT = "Only PDF and text files are supported, as a base64 data URL.";
const TEXT_URL =
  /^data:(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|x-yaml|javascript))(?:;[^;,]{1,100})*;base64,/i;
const HEAD_MAX = 512;

export function filePartOf(
  part: Extract<InputPart, { type: "input_file" }>,
  at: string,
): Result<Extract<UserPart, { type: "text" | "file" }>> {
  if (part.file_id) return invalid(NO_FILES, `${at}.file_id`);
  if (part.file_url) return invalid(NO_FILES, `${at}.file_url`);
  const data = part.file_data ?? "";
  const { filename } = part;
  if (data.startsWith(PDF_DATA_PREFIX)) {
    return success({
      type: "file",
      file: { file_data: data, ...(filename && { filename: filename.slice(0, 256) }) },
    });
  }
  const [head] = TEXT_URL.exec(data.slice(0, HEAD_MAX)) ?? [];
  if (head === undefined) return invalid(ONLY_TEXT, `${at}.file_data`);
  try {
    const bytes = fromBase64(data.slice(head.length));
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
    const name = filename ? `File ${JSON.stringify(filename.slice(0, 256))}:\n` : "";
    return success({ type: "text", text: name + text });
  } catch {
    return invalid("The file's data URL must be base64-encoded UTF-8 text.", `${at}.file_data`);
  }
}

function textsOf(content: readonly InputPart[], at: string): Result<readonly string[]> {
  const texts: string[] = [];
  for (const [index, part] of content.entries()) {
    if (!("text" in part)) {
      return invalid("Only user messages can have this content.", `${at}.content[${index}].type`);
    }
    texts.push(part.text);
  }
  return success(texts);
}

/** Returns the text of a message from another agent (Codex). Agents put it in different fields. */
export function textOfAgentMessage(item: JsonObject): string {
  const { content, message, text } = item;
  const parts = listOf(content)
    .filter(isObject)
    .map((part) => textOf(part["text"]));
  return [textOf(content), ...parts, textOf(message), textOf(text)]
    .filter((one) => one !== "")
    .join("\n");
}

function shortenId(id: string): string {
  return id.slice(0, 64);
}
