import * as z from "zod/mini";
import { BUDGET_SCOPES } from "./budgets.ts";
import type { BudgetOwner } from "./budgets.ts";
import { timestamp } from "./clock.ts";
import type { Actor } from "./event.ts";
import { timeWithZoneSchema } from "./key-terms.ts";
import { labelSchema } from "./label.ts";

/** Maximum pauses of an organization per source. */
export const PAUSES_MAX = 1000;

/** The creator of a pause. An owner can have one pause from each source. */
export type PauseSource = "member" | "operator" | "budget";

/** A pause, which rejects its owner's new requests. Times are Unix ms. */
export type Pause = BudgetOwner & {
  readonly id: string;
  readonly source: PauseSource;
  readonly reason: string;
  /** The pause's end, or null if a person must end it. */
  readonly until: number | null;
  /** The latest possible expiry of a paused session. The pause ends with the session. */
  readonly sessionEndsAt?: number;
  readonly stopRunning?: true;
  readonly budgetId?: string;
  readonly createdBy: Actor;
  readonly createdAt: number;
};

/** A pause, and its owner's ID in the API (for an end user, the external ID). */
export type PauseWithOwner = { readonly pause: Pause; readonly name: string };

export const pauseSchema = z.object({
  scope: z.enum(BUDGET_SCOPES),
  id: z.optional(labelSchema(256)),
  reason: labelSchema(200),
  until: z.nullish(timeWithZoneSchema),
  stop_running: z.optional(z.boolean()),
});
export type PauseFields = z.infer<typeof pauseSchema>;

export function pauseView({ pause, name }: PauseWithOwner) {
  return {
    id: pause.id,
    scope: pause.scope,
    subject: name,
    reason: pause.reason,
    until: pause.until === null ? null : timestamp(pause.until),
    stop_running: pause.stopRunning === true,
    source: pause.source,
    ...(pause.budgetId !== undefined && { budget_id: pause.budgetId }),
    created_by: { ...pause.createdBy },
    created_at: timestamp(pause.createdAt),
  };
}
