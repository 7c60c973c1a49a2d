import { ToolNames } from "../../core/tool-name.ts";
import type { CountBody } from "./client-request.ts";

/** What has no word in the core, so that only a route of this dialect can do the request. */
type Lack = { readonly param: string; readonly message: string };

/** What a conversion to the core leaves behind, and what it calls otherwise. */
export class ConversionLosses {
  /** Names of what was left out, for `x-dropped`. */
  readonly dropped = new Set<string>();
  readonly names: ToolNames;
  #lack: Lack | null = null;

  constructor(body: CountBody) {
    this.names = new ToolNames(namesIn(body));
  }

  /** The first thing that cannot be converted. */
  get lack(): Lack | null {
    return this.#lack;
  }

  cannot(param: string, problem: string): void {
    this.#lack ??= { param, message: `${param}: ${problem}` };
  }
}

/** Names of tools, as they are declared and then as they were called. */
function namesIn({ tools, messages }: CountBody): readonly string[] {
  const called = messages.flatMap(({ content }) =>
    typeof content === "string"
      ? []
      : content.flatMap((block) => (block.type === "tool_use" ? [block.name] : [])),
  );
  return [...(tools ?? []).flatMap(({ name }) => name ?? []), ...called];
}
