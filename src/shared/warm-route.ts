import * as z from "zod/mini";

/**
 * The route that has a conversation's prompt cached because it took over from another route.
 * `affinity` is the conversation's hash, and `seconds` the cache's lifetime.
 */
export type WarmRoute = {
  readonly affinity: string;
  readonly route: string;
  readonly seconds: number;
};

export const warmRouteSchema: z.ZodMiniType<WarmRoute> = z.object({
  affinity: z.string().check(z.maxLength(64)),
  route: z.string().check(z.maxLength(512)),
  seconds: z.int().check(z.minimum(0), z.maximum(86_400)),
});
