import * as fc from "fast-check";
import { assert } from "vitest";
import { createInputItemId } from "../../src/models/stored-responses/items.ts";
import { callItem, reasoningItem, scenario, textItem } from "../fixtures/responses-replies.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import { errorOf, send } from "./client.ts";
import type { Account } from "./client.ts";
import { read, createResponse } from "./stored-responses-client.ts";
import { responseOf, mockOpenAi, replied, streamedResponseOf } from "./responses-client.ts";
import { upstreamStream, USAGE } from "./upstream.ts";
import { HOUR_MS } from "../../src/shared/clock.ts";

type Item = Readonly<Record<string, unknown>>;
/** A request with its response, as the client has them. */
type Turn = {
  readonly id: string;
  readonly parent: Turn | null;
  /** The items that it added to the conversation, including the response with reasoning. */
  readonly added: readonly Item[];
  readonly output: readonly Item[];
  /** The turn that it continues by ID. Its own items are stored unchanged if that is its parent. */
  readonly follows: Turn | null;
  readonly endsAt: number;
  deleted: boolean;
};

const KINDS = ["text", "call", "thought", "thought and call"] as const;
const WAYS = ["previous", "items", "mixed"] as const;
export const step = fc.record({
  act: fc.constantFrom("create", "create", "create", "create", "create", "delete", "later"),
  /** The turn to continue, 0 for none, and the earlier turn whose ID is sent in a mixed request. */
  at: fc.nat({ max: 9 }),
  before: fc.nat({ max: 9 }),
  way: fc.constantFrom(...WAYS),
  inputForm: fc.constantFrom("text", "message", "parts", "two"),
  kind: fc.constantFrom(...KINDS),
  model: fc.constantFrom("mock/own", "mock/other"),
  stream: fc.boolean(),
  include: fc.boolean(),
  /** Whether the request also refers to stored items by ID. */
  names: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

export const STORED_HOURS = 24;
const LATER_MS = 7 * HOUR_MS;

/** Returns a provider's response in OpenAI's Responses format, or as a chat completion. */
function replyOf(
  kind: Step["kind"],
  id: string,
  { url, stream }: { url: string; stream: boolean },
) {
  const calls = kind.endsWith("call");
  if (url.endsWith("/responses")) {
    const items = [
      ...(kind.startsWith("thought") ? [reasoningItem(["Let me ", "think."])] : []),
      ...(calls ? [callItem(id, "f", ['{"a":', "1}"])] : [textItem(["Hello, ", id])]),
    ];
    return replied(scenario(items)[stream ? "stream" : "json"]);
  }
  const toolCall = {
    index: 0,
    id,
    type: "function",
    function: { name: "f", arguments: '{"a":1}' },
  };
  const message = calls
    ? { role: "assistant", content: null, tool_calls: [toolCall] }
    : { content: id };
  const finish_reason = calls ? "tool_calls" : "stop";
  const choice = { index: 0, finish_reason };
  if (!stream) return Response.json({ choices: [{ ...choice, message }], usage: USAGE });
  return upstreamStream([
    { choices: [{ index: 0, delta: message, finish_reason: null }] },
    { choices: [{ ...choice, delta: {} }] },
    { choices: [], usage: USAGE },
  ]);
}

/** An organization's conversations and their provider. */
export class StoredConversations {
  readonly turns: Turn[] = [];
  readonly #own: Account;
  readonly #startedMs = Date.now();
  #clockMs = 0;
  #callCount = 0;
  #next: Step["kind"] = "text";
  readonly #upstream = mockOpenAi(({ url, body }) =>
    replyOf(this.#next, `call_${this.#callCount}`, { url, stream: body["stream"] === true }),
  );

  constructor(own: Account) {
    this.#own = own;
  }

  async run(one: Step): Promise<void> {
    if (one.act === "later") {
      this.#clockMs += LATER_MS;
      setClock(this.#nowMs);
    } else if (one.act === "delete") await this.#delete(this.#turnAt(one.at));
    else await this.#createResponse(one);
  }

  get #nowMs(): number {
    return this.#startedMs + this.#clockMs;
  }

  #turnAt(at: number): Turn | null {
    return at === 0 ? null : (this.turns[(at - 1) % Math.max(1, this.turns.length)] ?? null);
  }

  #lives(turn: Turn): boolean {
    return !turn.deleted && turn.endsAt > this.#nowMs;
  }

  #goesOn(turn: Turn | null): boolean {
    return turn === null || (this.#lives(turn) && this.#goesOn(turn.follows));
  }

  async #delete(turn: Turn | null): Promise<void> {
    if (turn === null) return;
    const path = `/v1/responses/${turn.id}`;
    const { status } = await send(path, { method: "DELETE", key: this.#own.key });
    assert.equal(status, this.#lives(turn) ? 200 : 404);
    turn.deleted = true;
  }

  async #createResponse(one: Step): Promise<void> {
    const parent = this.#turnAt(one.at);
    const added = addedBy(one, parent, ++this.#callCount);
    this.#next = one.kind;
    const request = this.#requestOf(one, parent, added);
    const fields = fieldsOf(one);
    const body = { ...fields, ...request.body };
    const { calls, bindings } = this.#upstream;
    const before = calls.length;
    const response = await createResponse(this.#own.key, body, bindings);
    if (!request.isKept) {
      const error = await errorOf(response, 400);
      assert.include(error.message, "not found.");
      assert.equal(calls.length, before);
      return;
    }
    const { id } = one.stream
      ? (await streamedResponseOf(response)).response
      : await responseOf(response);
    const sent = calls.at(-1)?.body;
    const isPlain = parent === null && typeof request.body.input === "string";
    const input = isPlain ? request.body.input : [...historyOf(parent), ...added];
    const whole = { ...fields, store: false, input };
    const again = await createResponse(this.#own.key, whole, bindings);
    assert.equal(again.status, 200, await again.text());
    assert.deepEqual(sent, calls.at(-1)?.body);
    const shown = await read(id, this.#own.key, "?include[]=reasoning.encrypted_content");
    const { output } = await shown.json<{ output: Item[] }>();
    const endsAt = this.#nowMs + STORED_HOURS * HOUR_MS;
    const { follows } = request;
    this.turns.push({ id, parent, added, output, follows, endsAt, deleted: false });
  }

  /**
   * Returns the request, its expected stored items, and whether all items it refers to are stored.
   */
  #requestOf(one: Step, parent: Turn | null, added: readonly Item[]) {
    const follows = followedBy(one, parent);
    const named = pathTo(parent).filter((turn) => !pathTo(follows).includes(turn));
    const references = named.flatMap((turn) => [
      ...(one.names && turn.follows === turn.parent
        ? turn.added.map((item, at) =>
            reference(createInputItemId(turn.id, item["type"] ?? "message", at)),
          )
        : turn.added),
      ...turn.output.map(({ id }) => reference(id)),
    ]);
    const isText = one.inputForm === "text" && references.length === 0 && added.length === 1;
    const input = isText ? (added[0]?.["content"] ?? "") : [...references, ...added];
    return {
      follows,
      isKept: this.#goesOn(follows) && named.every((turn) => this.#lives(turn)),
      body: { input, ...(follows !== null && { previous_response_id: follows.id }) },
    };
  }
}

const reference = (id: unknown): Item => ({ type: "item_reference", id });
const itemsOf = ({ added, output }: Turn): readonly Item[] => [...added, ...output];
const pathTo = (turn: Turn | null): readonly Turn[] =>
  turn === null ? [] : [...pathTo(turn.parent), turn];
const historyOf = (turn: Turn | null): readonly Item[] => pathTo(turn).flatMap(itemsOf);

/** Returns the turn whose ID is sent. */
function followedBy({ way, before }: Step, parent: Turn | null): Turn | null {
  if (way === "previous") return parent;
  return way === "items" ? null : (pathTo(parent)[before] ?? null);
}

function fieldsOf({ model, stream, include }: Step): object {
  return {
    model,
    stream,
    instructions: "Be brief.",
    tools: [{ type: "function", name: "f" }],
    ...(include && { include: ["reasoning.encrypted_content"] }),
  };
}

/** Returns the outputs of the last calls, then the user's message. */
function addedBy({ inputForm }: Step, parent: Turn | null, number: number): readonly Item[] {
  const outputs = (parent?.output ?? [])
    .filter(({ type }) => type === "function_call")
    .map(({ call_id }) => ({ type: "function_call_output", call_id, output: `${number}` }));
  const words = `Words ${number}`;
  const parts = [{ type: "input_text", text: words }];
  const messages: Readonly<Record<Step["inputForm"], readonly Item[]>> = {
    text: [{ type: "message", role: "user", content: words }],
    message: [{ role: "user", content: words }],
    parts: [{ role: "user", content: parts }],
    two: [
      { role: "developer", content: "Be kind." },
      { type: "message", role: "user", content: parts },
    ],
  };
  return [...outputs, ...messages[inputForm]];
}
