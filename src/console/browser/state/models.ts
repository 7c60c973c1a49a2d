import type { ListedModel } from "../lib/model-prices.ts";
import { useRead } from "./reads.ts";
import type { Read } from "./reads.ts";

export function useModels(isRead = true): Read<{ readonly data: readonly ListedModel[] }> {
  return useRead(isRead ? "GET /v1/models" : null, {}, { every: 30_000 }) as Read<{
    readonly data: readonly ListedModel[];
  }>;
}
