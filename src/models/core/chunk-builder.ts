import type { Delta, ToolCallDelta } from "./chunk.ts";
import { isCutOffReason } from "./finish-reason.ts";
import type { StreamEvent } from "./provider.ts";
import { newToolCallId } from "./output-part.ts";
import type { FinishReason } from "./finish-reason.ts";
import type { OutputPart } from "./output-part.ts";

type OpenTool = { hasArguments: boolean; readonly isCustom: boolean };

/**
 * Builds chunks in OpenAI's order: the role once, numbered tool calls, and a separate finish chunk.
 */
export class ChunkBuilder {
  readonly #index: number;
  readonly #tools: OpenTool[] = [];
  #hasBegun = false;
  #isFinished = false;

  constructor(index = 0) {
    this.#index = index;
  }

  get finished(): boolean {
    return this.#isFinished;
  }

  get hasTools(): boolean {
    return this.#tools.length > 0;
  }

  begin(): StreamEvent[] {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
    return [this.#chunk({ role: "assistant", content: "" })];
  }

  addPart(part: OutputPart): StreamEvent[] {
    switch (part.kind) {
      case "text":
        return this.addText(part.text);
      case "thought":
        return this.addReasoning(part.text);
      case "refusal":
        return part.text === "" ? [] : this.#deltaEvents({ refusal: part.text });
      case "detail":
        return this.#deltaEvents({ reasoning_details: [part.detail] });
      case "annotation":
        return this.#deltaEvents({ annotations: [part.annotation] });
      case "call":
        return [
          ...this.addTool(part.id, part.name, part.more),
          ...this.addToolArguments(part.arguments),
        ];
      case "finish":
        return this.finish(part.reason);
    }
  }

  addText(content: string): StreamEvent[] {
    if (content === "") return [];
    const firstEvents = this.begin();
    return [...firstEvents, { kind: "text", index: this.#index, json: JSON.stringify(content) }];
  }

  addReasoning(text: string): StreamEvent[] {
    return text === "" ? [] : this.#deltaEvents({ reasoning_content: text });
  }

  addDelta(delta: Delta): StreamEvent[] {
    return this.#deltaEvents(delta);
  }

  addTool(
    id: string,
    name: string,
    extraFields: Pick<ToolCallDelta, "extra_content"> = {},
  ): StreamEvent[] {
    const index = this.#tools.length;
    this.#tools.push({ hasArguments: false, isCustom: false });
    const call = { index, id: id === "" ? newToolCallId() : id, type: "function" } as const;
    return this.#deltaEvents({
      tool_calls: [{ ...call, function: { name, arguments: "" }, ...extraFields }],
    });
  }

  addCustomTool(id: string, name: string): StreamEvent[] {
    const index = this.#tools.length;
    this.#tools.push({ hasArguments: false, isCustom: true });
    const call = { index, id: id === "" ? newToolCallId() : id, type: "custom" } as const;
    return this.#deltaEvents({ tool_calls: [{ ...call, custom: { name, input: "" } }] });
  }

  addToolArguments(json: string, tool = this.#tools.length - 1): StreamEvent[] {
    const known = this.#tools[tool];
    if (json === "" || known === undefined) return [];
    known.hasArguments = true;
    const piece = known.isCustom ? { custom: { input: json } } : { function: { arguments: json } };
    return this.#deltaEvents({ tool_calls: [{ index: tool, ...piece }] });
  }

  /**
   * Ends the choice. Calls that arrived without arguments get "{}". The reason `stop` becomes
   * `tool_calls` if there are calls.
   */
  finish(reason: FinishReason): StreamEvent[] {
    if (this.#isFinished) return [];
    const open = this.begin();
    for (const [index, tool] of this.#tools.entries()) {
      if (isCutOffReason(reason) || tool.hasArguments || tool.isCustom) continue;
      open.push(...this.addToolArguments("{}", index));
    }
    this.#isFinished = true;
    const finish = reason === "stop" && this.#tools.length > 0 ? "tool_calls" : reason;
    return [...open, this.#chunk({}, finish)];
  }

  #deltaEvents(delta: Delta): StreamEvent[] {
    return [...this.begin(), this.#chunk(delta)];
  }

  #chunk(delta: Delta, finishReason: FinishReason | null = null): StreamEvent {
    const choice = { index: this.#index, delta, logprobs: null, finish_reason: finishReason };
    return { kind: "chunk", chunk: { object: "chat.completion.chunk", choices: [choice] } };
  }
}
