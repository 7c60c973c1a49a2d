import { FittingToolNames } from "../../core/tool-name.ts";
import type { CountBody } from "./client-request.ts";

type MissingFeature = { readonly param: string; readonly message: string };

export class ConversionLosses {
  readonly dropped = new Set<string>();
  readonly names: FittingToolNames;
  #missingFeature: MissingFeature | null = null;

  constructor(body: CountBody) {
    this.names = new FittingToolNames(toolNamesIn(body));
  }

  get lack(): MissingFeature | null {
    return this.#missingFeature;
  }

  recordMissingFeature(param: string, problem: string): void {
    this.#missingFeature ??= { param, message: `${param}: ${problem}` };
  }
}

function toolNamesIn({ tools, messages }: CountBody): readonly string[] {
  const called = messages.flatMap(({ content }) =>
    typeof content === "string"
      ? []
      : content.flatMap((block) => (block.type === "tool_use" ? [block.name] : [])),
  );
  return [...(tools ?? []).flatMap(({ name }) => name ?? []), ...called];
}
