import type { Usage } from "../../../shared/usage.ts";
import { ChunkBuilder } from "../../core/chunk-builder.ts";
import { parseObject } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure, StreamEvent } from "../../core/provider.ts";
import type { PayloadReader } from "../../core/sse-reader.ts";
import { answerOf, finishOf } from "./answer.ts";
import { failureInside, parsed } from "./failure.ts";
import { failureEvents } from "../../core/spent.ts";

/**
 * Turns one stream's payloads into events. There is no terminal marker: the end is the end of file after
 * every candidate has finished. An error may stand bare in the body, outside of any event; it is then
 * read at the end of file.
 */
export class ChunkReader implements PayloadReader {
  #ended = false;
  #hasSaid = false;
  readonly #choices = new Map<number, ChunkBuilder>();
  readonly #secrets: () => readonly string[];
  readonly #asked: number;

  /** `secrets`: what an error's text must not show. `asked`: how many candidates were asked for. */
  constructor(secrets: () => readonly string[], asked = 1) {
    this.#secrets = secrets;
    this.#asked = asked;
  }

  get ended(): boolean {
    return this.#ended;
  }

  read(data: string): StreamEvent[] {
    const isNothing = data.trim() === "" || data === "[DONE]"; // some proxies add OpenAI's marker
    if (this.#ended || isNothing) return [];
    const raw = parseObject(data);
    if (raw === null) return this.fail("bad_event");
    const failure = failureInside(raw, this.#secrets());
    if (failure === null) return this.#chunk(raw);
    return this.#failed(failure, answerOf(raw).usage);
  }

  fail(reason: string): StreamEvent[] {
    return this.#failed({ kind: "retry", reason });
  }

  endOfFile(foreign: string): StreamEvent[] {
    const failure = failureInside(parsed(foreign), this.#secrets());
    if (failure !== null) return this.#failed(failure);
    if (!this.#isFinished()) return foreign.trim() === "" ? [] : this.fail("bad_event");
    this.#ended = true;
    return [{ kind: "end" }];
  }

  #chunk(raw: JsonObject): StreamEvent[] {
    const { isBlocked, candidates, usage } = answerOf(raw);
    const events = isBlocked ? this.#blocked() : [];
    for (const { index, said, finish: reason } of candidates) {
      const choice = this.#choice(index);
      if (choice.finished) continue;
      events.push(...said.flatMap((one) => choice.say(one)));
      if (reason === "") continue;
      const finish = finishOf(reason);
      if (typeof finish === "object") return [...events, ...this.#failed(finish, usage)];
      events.push(...choice.finish(finish));
    }
    this.#hasSaid ||= events.length > 0;
    // Before anything was said another route may still answer, and every chunk repeats its usage.
    if (usage === null || !this.#hasSaid) return events;
    const isWhole = this.#isFinished() && this.#choices.size >= this.#asked;
    return [...events, { kind: "usage", usage, ...(!isWhole && { partial: true }) }];
  }

  /** A block is about the prompt, and so about every choice. */
  #blocked(): StreamEvent[] {
    this.#choice(0);
    return [...this.#choices.values()].flatMap((choice) => choice.finish("content_filter"));
  }

  #choice(index: number): ChunkBuilder {
    const known = this.#choices.get(index) ?? new ChunkBuilder(index);
    this.#choices.set(index, known);
    return known;
  }

  #isFinished(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every((choice) => choice.finished);
  }

  #failed(failure: ProviderFailure, usage: Usage | null = null): StreamEvent[] {
    this.#ended = true;
    return failureEvents(failure, usage);
  }
}
