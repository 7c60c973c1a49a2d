import { parseJsonText } from "../../http/json-text.ts";
import { hash32 } from "../../lib/hash.ts";
import { fromBase64, toBase64Url } from "../../core/base64.ts";
import { isObject, listOf, textOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import { BaseDraft } from "./client-drafts.ts";
import type { Place } from "./client-drafts.ts";
import type { OutputItem, SummaryPart } from "./client-response-object.ts";

/**
 * What a model's next turn needs of this one and the Responses dialect has no field for: the core's
 * `reasoning_details`, and the `extra_content` of calls by their `call_id`.
 */
export type Kept = {
  readonly details: readonly JsonObject[];
  readonly extras: Readonly<Record<string, JsonObject>>;
};

/** First the version, last a check of what stands between: it finds damage, it is no secret. */
const VERSION = "tk1";
/** An item is a part of a body of at most 20 MB; no maker's reasoning of one turn comes near. */
const CHARACTERS_MAX = 4_000_000;

/**
 * The text of `encrypted_content`, or null where nothing is to be kept. It is opaque, not sealed: its
 * parts are signed or encrypted by the model's maker, who refuses what was changed.
 */
export function sealed({ details, extras }: Kept): string | null {
  const hasExtras = Object.keys(extras).length > 0;
  if (details.length === 0 && !hasExtras) return null;
  const json = JSON.stringify({ details, ...(hasExtras && { extras }) });
  const payload = toBase64Url(new TextEncoder().encode(json));
  return `${VERSION}.${payload}.${checkOf(payload)}`;
}

/** What `sealed` kept; null for another's text, a damaged or an oversized one. Never throws. */
export function unsealed(text: string): Kept | null {
  if (text.length > CHARACTERS_MAX) return null;
  const [version, payload, check, rest] = text.split(".", 4);
  if (version !== VERSION || payload === undefined || rest !== undefined) return null;
  if (check !== checkOf(payload)) return null;
  const json = decoded(payload);
  const parsed = json === null ? null : parseJsonText(json);
  if (parsed?.ok !== true) return null;
  const details = listOf(parsed.value["details"]).filter(isObject);
  const extras = isObject(parsed.value["extras"]) ? parsed.value["extras"] : {};
  return {
    details: details.filter((detail) => textOf(detail["type"]) !== ""),
    extras: Object.fromEntries(
      Object.entries(extras).flatMap(([id, extra]) => (isObject(extra) ? [[id, extra]] : [])),
    ),
  };
}

function checkOf(payload: string): string {
  return hash32(payload, 1).toString(36) + hash32(payload, 2).toString(36);
}

function decoded(payload: string): string | null {
  try {
    const bytes = fromBase64(payload.replaceAll("-", "+").replaceAll("_", "/"));
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** What the model thought, as far as it may be seen, and what its next turn needs of it. */
export class ReasoningDraft extends BaseDraft {
  readonly isWhole = true;
  #summary = "";
  readonly #details: Kept["details"][number][] = [];
  readonly #extras: Record<string, Kept["details"][number]> = {};
  /** Whether the client asked to see what its next turn needs. */
  readonly #isShown: boolean;

  constructor(place: Place, isShown: boolean) {
    super(place);
    this.#isShown = isShown;
  }

  /** No summary was said yet. */
  get isEmpty(): boolean {
    return this.#summary === "";
  }

  summary(text: string): string {
    const isFirst = this.#summary === "";
    this.#summary += text;
    return (isFirst ? this.#sayPart("added", "") : "") + this.#saySummary("delta", { delta: text });
  }

  keep({ details, extras }: Kept): void {
    this.#details.push(...details);
    for (const [id, extra] of Object.entries(extras)) this.#extras[id] = extra;
  }

  item(): OutputItem {
    return this.#isShown ? this.kept() : { ...this.kept(), encrypted_content: null };
  }

  override kept(): Extract<OutputItem, { type: "reasoning" }> {
    const { id } = this.place;
    const { status } = this;
    const isDone = status !== "in_progress";
    const summary: SummaryPart[] =
      this.isOpen && this.#summary !== "" ? [{ type: "summary_text", text: this.#summary }] : [];
    const kept = isDone ? sealed({ details: this.#details, extras: this.#extras }) : null;
    return { id, type: "reasoning", status, summary, encrypted_content: kept };
  }

  protected begin(): string {
    const text = this.#summary;
    this.#summary = "";
    return text === "" ? "" : this.summary(text);
  }

  protected end(): string {
    if (this.#summary === "") return "";
    const said = this.#saySummary("done", { text: this.#summary });
    return said + this.#sayPart("done", this.#summary);
  }

  #sayPart(what: "added" | "done", text: string): string {
    return this.say(`response.reasoning_summary_part.${what}`, {
      summary_index: 0,
      part: { type: "summary_text", text },
    });
  }

  #saySummary(what: "delta" | "done", fields: object): string {
    return this.say(`response.reasoning_summary_text.${what}`, { summary_index: 0, ...fields });
  }
}
