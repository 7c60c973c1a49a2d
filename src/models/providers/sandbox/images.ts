import { NO_USAGE } from "../../../shared/usage.ts";
import { estimateTokens } from "../../../shared/tokens.ts";
import type { ImageCall, ProviderResult, StreamEvent } from "../../core/provider.ts";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const SOURCE_TOKENS = 1024;

export function sandboxImages({ body }: ImageCall): ProviderResult {
  const { n, partial_images: previews = 0, prompt, edit } = body;
  const { size = "1024x1024", quality = "low" } = body;
  const usage = {
    ...NO_USAGE,
    input: Math.ceil(estimateTokens(prompt)),
    image: n,
    ...(edit !== undefined && { input_image_token: edit.images.length * SOURCE_TOKENS }),
  };
  const events: StreamEvent[] = [
    ...Array.from({ length: previews }, (_, at) => preview(at)).flat(),
    ...Array.from({ length: n }, (_, at) => pictureAt(at)),
    native({ background: "opaque", output_format: "png", quality, size }),
    { kind: "usage", usage },
    { kind: "end" },
  ];
  const batches = [events];
  return {
    kind: "stream",
    events: { next: () => Promise.resolve(batches.pop() ?? null), cancel: () => batches.pop() },
  };
}

function preview(at: number): StreamEvent[] {
  const picture: StreamEvent = { kind: "piece", index: 0, text: PIXEL, isPartial: true };
  return [picture, native({ partial_image_index: at })];
}

function pictureAt(at: number): StreamEvent {
  return { kind: "piece", index: at + 1, text: PIXEL, isPartial: false };
}

function native(event: Extract<StreamEvent, { kind: "native" }>["event"]): StreamEvent {
  return { kind: "native", event, text: "", finish: null };
}
