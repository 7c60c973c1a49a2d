import { invalid, refuse, success } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { fromBase64 } from "../../core/data-url.ts";
import { PDF_DATA_URL_PREFIX } from "../../core/core-request.ts";
import {
  isObject,
  hasTypeField,
  listOf,
  textOf,
  createListReader,
  createObjectReader,
} from "../../core/json-value.ts";
import { joinNamespaceAndName } from "../../core/tool-calls.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { ChatMessage } from "../../core/core-request.ts";
import { isInputPart } from "./client-request.ts";
import type { InputItem, InputPart } from "./client-request.ts";
import { parseThoughts } from "../../core/stored-thoughts.ts";
import type { StoredThoughts } from "../../core/stored-thoughts.ts";
import { toCustomToolArguments } from "./client-tools.ts";

type Assistant = Extract<ChatMessage, { role: "assistant" }>;
type UserPart = Exclude<Extract<ChatMessage, { role: "user" }>["content"], string>[number];

/** Chat messages, converted from a request's input items. */
export type ConvertedInput = {
  readonly messages: readonly ChatMessage[];
  /** Types of dropped items, such as reasoning that only its own provider can read. */
  readonly left: ReadonlySet<string>;
  readonly places: ReadonlyMap<number, string>;
};

/**
 * Converts items to messages. Joins consecutive assistant items, and adds their calls' outputs.
 * Returns 400 for mismatched calls and outputs, stored files and images, and files by URL.
 */
export function convertItemsToChatMessages(items: readonly InputItem[]): Result<ConvertedInput> {
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

/** Tool outputs in order, by call ID. Some hosts reuse a call ID in a later turn. */
type Outputs = ReadonlyMap<string, readonly OutputAtPath[]>;

function outputsOf(items: readonly InputItem[]): Result<Outputs> {
  const callCounts = new Map<string, number>();
  for (const item of items) {
    if (item.type !== "function_call" && item.type !== "custom_tool_call") continue;
    callCounts.set(item.call_id, (callCounts.get(item.call_id) ?? 0) + 1);
  }
  const outputs = new Map<string, OutputAtPath[]>();
  for (const [index, item] of items.entries()) {
    if (item.type !== "function_call_output" && item.type !== "custom_tool_call_output") continue;
    const path = `input[${index}]`;
    const earlierOutputs = outputs.get(item.call_id) ?? [];
    const callCount = callCounts.get(item.call_id) ?? 0;
    if (earlierOutputs.length > 0 && earlierOutputs.length >= callCount) {
      return invalid(
        `The tool call '${shortenId(item.call_id)}' has two outputs.`,
        `${path}.call_id`,
      );
    }
    outputs.set(item.call_id, [...earlierOutputs, { item, at: path }]);
  }
  return success(outputs);
}

class AssistantTurn {
  text: string | null = null;
  refusal: string | null = null;
  readonly calls: NonNullable<Assistant["tool_calls"]>[number][] = [];
  readonly outputs: OutputAtPath[] = [];
  reasoning = "";
  readonly details: JsonObject[] = [];
  readonly extras = new Map<string, JsonObject>();
}

class ItemReader {
  readonly #messages: ChatMessage[] = [];
  readonly #droppedTypes = new Set<string>();
  readonly #outputs: Outputs;
  readonly #contentPaths = new Map<number, string>();
  readonly #callCounts = new Map<string, number>();
  #turn: AssistantTurn | null = null;

  constructor(outputs: Outputs) {
    this.#outputs = outputs;
  }

  read(items: readonly InputItem[]): Result<ConvertedInput> {
    for (const [index, item] of items.entries()) {
      const refusal = this.#item(item, `input[${index}]`);
      if (refusal !== null) return refusal;
    }
    const refusal = this.#endTurn();
    if (refusal !== null) return refusal;
    for (const [id, [output]] of this.#outputs) {
      if (output === undefined || this.#callCounts.has(id)) continue;
      return invalid(
        `No tool call found for the output of '${shortenId(id)}'.`,
        `${output.at}.call_id`,
      );
    }
    return success({
      messages: this.#messages,
      left: this.#droppedTypes,
      places: this.#contentPaths,
    });
  }

  #item(item: InputItem, path: string): Refusal | null {
    // oxlint-disable-next-line switch-exhaustiveness-check -- others aren't converted
    switch (item.type) {
      case "message":
        return this.#message(item, path);
      case "function_call":
        return this.#call(item, item.arguments);
      case "custom_tool_call":
        return this.#call(item, toCustomToolArguments(item.input));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#callCounts.has(item.call_id) ? this.#endTurn() : null;
      case "reasoning":
        this.#reasoning(item);
        return null;
      case "agent_message":
        return this.#addText("user", getAgentMessageText(item));
      default:
        return this.#dropItem(item.type);
    }
  }

  #dropItem(type: InputItem["type"]): null {
    if (type !== "additional_tools") this.#droppedTypes.add(type);
    return null;
  }

  #message(item: Extract<InputItem, { type: "message" }>, path: string): Refusal | null {
    const { role, content } = item;
    if (role === "assistant") return this.#assistant(content, path);
    if (typeof content === "string") return this.#addText(role, content);
    if (role !== "user") {
      const texts = textsOf(content, path);
      return texts.ok ? this.#addText(role, texts.value.join("\n")) : texts;
    }
    const parts = userParts(content, `${path}.content`);
    if (!parts.ok) return parts;
    const refusal = this.#endTurn();
    if (refusal !== null) return refusal;
    const [first, second] = parts.value;
    if (first === undefined) this.#messages.push({ role, content: "" });
    else if (first.type === "text" && second === undefined) {
      this.#messages.push({ role, content: first.text });
    } else {
      this.#contentPaths.set(this.#messages.length, `${path}.content`);
      this.#messages.push({ role, content: [...parts.value] });
    }
    return null;
  }

  #addText(role: "user" | "system" | "developer", content: string): Refusal | null {
    const refusal = this.#endTurn();
    if (refusal === null) this.#messages.push({ role, content });
    return refusal;
  }

  #assistant(content: string | readonly InputPart[], path: string): Refusal | null {
    if (this.#turn !== null && (this.#turn.text ?? this.#turn.refusal) !== null) {
      const refusal = this.#endTurn();
      if (refusal !== null) return refusal;
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
      path,
    );
    if (!texts.ok) return texts;
    if (texts.value.length > 0 || refusals.length === 0) turn.text = texts.value.join("");
    return null;
  }

  #call({ call_id: id, name, namespace }: CalledTool, args: string): Refusal | null {
    const callIndex = this.#callCounts.get(id) ?? 0;
    const output = this.#outputs.get(id)?.[callIndex];
    if (output === undefined) {
      return invalid(`No tool output found for the call '${shortenId(id)}'.`, "input");
    }
    this.#callCounts.set(id, callIndex + 1);
    const turn = (this.#turn ??= new AssistantTurn());
    const called = { name: joinNamespaceAndName(namespace ?? null, name), arguments: args };
    turn.calls.push({ id, type: "function", function: called });
    turn.outputs.push(output);
    return null;
  }

  #reasoning({ encrypted_content: encrypted, summary }: Reasoning): void {
    const thoughts = encrypted ? parseThoughts(encrypted) : toReadableThoughts(summary);
    if (thoughts === null) {
      this.#droppedTypes.add("reasoning");
      return;
    }
    const turn = (this.#turn ??= new AssistantTurn());
    turn.reasoning += thoughts.text;
    for (const detail of thoughts.details) turn.details.push(detail);
    for (const [id, extra] of Object.entries(thoughts.extras)) turn.extras.set(id, extra);
  }

  #endTurn(): Refusal | null {
    const turn = this.#turn;
    this.#turn = null;
    if (turn === null) return null;
    if (turn.text === null && turn.refusal === null && turn.calls.length === 0) return null;
    this.#messages.push(messageOf(turn));
    const imageParts: UserPart[] = [];
    for (const output of turn.outputs) {
      const id = output.item.call_id;
      const parts = outputParts(output);
      if (!parts.ok) return parts;
      const images = parts.value.filter((part) => part.type !== "text");
      const texts = parts.value.flatMap((part) => (part.type === "text" ? [part.text] : []));
      if (images.length > 0) {
        imageParts.push({ type: "text", text: `Output of the call ${id}:` }, ...images);
        if (texts.length === 0) texts.push("The output is shown in the next message.");
      }
      this.#messages.push({ role: "tool", tool_call_id: id, content: texts.join("\n") });
    }
    if (imageParts.length > 0) this.#messages.push({ role: "user", content: imageParts });
    return null;
  }
}

type Reasoning = Extract<InputItem, { type: "reasoning" }>;

const summaryParts = createListReader(createObjectReader({ text: textOf }));

function toReadableThoughts(summary: unknown): StoredThoughts | null {
  const text = summaryParts(summary)
    .map((part) => part.text)
    .join("\n\n");
  return text === "" ? null : { details: [], extras: {}, text };
}

function messageOf({ text, refusal, calls, reasoning, details, extras }: AssistantTurn): Assistant {
  const callsWithExtras = calls.map((call) => {
    const extra = extras.get(call.id);
    return extra === undefined ? call : { ...call, extra_content: extra };
  });
  return {
    role: "assistant",
    content: text,
    ...(refusal !== null && { refusal }),
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details.filter(hasTypeField) }),
    ...(callsWithExtras.length > 0 && { tool_calls: callsWithExtras }),
  };
}

/** Returns the parts of an output. Codex sends images (view_image) as a JSON list of parts. */
function outputParts({ item, at }: OutputAtPath): Result<readonly UserPart[]> {
  const { output } = item;
  const parts = typeof output === "string" ? parsePartsInText(output) : output;
  if (parts !== null) return userParts(parts, `${at}.output`);
  return success([{ type: "text", text: textOf(output) }]);
}

/** Parses a JSON list of content parts, or returns null. */
export function parsePartsInText(text: string): readonly InputPart[] | null {
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

function userParts(parts: readonly InputPart[], path: string): Result<readonly UserPart[]> {
  const converted: UserPart[] = [];
  for (const [index, part] of parts.entries()) {
    const userPartResult = userPart(part, `${path}[${index}]`);
    if (!userPartResult.ok) return userPartResult;
    converted.push(userPartResult.value);
  }
  return success(converted);
}

function userPart(part: InputPart, path: string): Result<UserPart> {
  if (part.type === "refusal") return success({ type: "text", text: part.refusal });
  if (part.type === "input_file") return toFilePart(part, path);
  if (part.type !== "input_image") return success({ type: "text", text: part.text });
  const { image_url: url, detail } = part;
  if (!url && part.file_id) return invalid(NO_FILES, `${path}.file_id`);
  if (!url) return badImage(NO_FILES, `${path}.image_url`);
  return success({
    type: "image_url",
    image_url: { url, ...(detail && { detail: detail === "original" ? "high" : detail }) },
  });
}

/** The error code for a bad image. Codex drops the image if `param` also ends with `.image_url`. */
const BAD_IMAGE = "invalid_value";

export function getImageErrorCode(param: string): string | null {
  return param.endsWith(".image_url") ? BAD_IMAGE : null;
}

function badImage(message: string, param: string): Refusal {
  return refuse({ kind: "invalid_request", message, param, code: BAD_IMAGE });
}

const NO_FILES = "This gateway doesn't store files. Send the file itself as a data URL.";
const UNSUPPORTED_FILE = "Only PDF and text files are supported, as a base64 data URL.";
const TEXT_DATA_URL =
  /^data:(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|x-yaml|javascript))(?:;[^;,]{1,100})*;base64,/i;
const PREFIX_CHARACTERS_MAX = 512;

export function toFilePart(
  part: Extract<InputPart, { type: "input_file" }>,
  path: string,
): Result<Extract<UserPart, { type: "text" | "file" }>> {
  if (part.file_id) return invalid(NO_FILES, `${path}.file_id`);
  if (part.file_url) return invalid(NO_FILES, `${path}.file_url`);
  const data = part.file_data ?? "";
  const { filename } = part;
  if (data.startsWith(PDF_DATA_URL_PREFIX)) {
    return success({
      type: "file",
      file: { file_data: data, ...(filename && { filename: filename.slice(0, 256) }) },
    });
  }
  const [prefix] = TEXT_DATA_URL.exec(data.slice(0, PREFIX_CHARACTERS_MAX)) ?? [];
  if (prefix === undefined) return invalid(UNSUPPORTED_FILE, `${path}.file_data`);
  try {
    const bytes = fromBase64(data.slice(prefix.length));
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
    const name = filename ? `File ${JSON.stringify(filename.slice(0, 256))}:\n` : "";
    return success({ type: "text", text: name + text });
  } catch {
    return invalid("The file's data URL must be base64-encoded UTF-8 text.", `${path}.file_data`);
  }
}

function textsOf(content: readonly InputPart[], path: string): Result<readonly string[]> {
  const texts: string[] = [];
  for (const [index, part] of content.entries()) {
    if (!("text" in part)) {
      return invalid(
        "Only user messages can contain this type of content.",
        `${path}.content[${index}].type`,
      );
    }
    texts.push(part.text);
  }
  return success(texts);
}

/**
 * Returns the text of another agent's message (Codex). Agents use different fields for the text.
 */
export function getAgentMessageText(item: JsonObject): string {
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
