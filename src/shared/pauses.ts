import * as z from "zod/mini";
import { BUDGET_SCOPES } from "./budgets.ts";
import type { BudgetOwner } from "./budgets.ts";
import { timestamp } from "./clock.ts";
import type { Actor } from "./event.ts";
import { timeSchema } from "./key-terms.ts";
import { labelSchema } from "./label.ts";

/** Maximum pauses of an organization, separately for members, operators and budgets. */
export const PAUSES_MAX = 1000;

/** The party that paused. Each party can have its own pause of an owner. */
export type PauseSource = "member" | "operator" | "budget";

/** A pause of an owner's new requests. Times are Unix ms. */
export type Pause = BudgetOwner & {
  readonly id: string;
  readonly source: PauseSource;
  readonly reason: string;
  /** The end. Null means until a person ends the pause. */
  readonly until: number | null;
  /** The latest end of the session that is paused. Its pause ends with it. */
  readonly sessionEndsAt?: number;
  readonly stopRunning?: true;
  readonly budgetId?: string;
  readonly createdBy: Actor;
  readonly createdAt: number;
};

/** A pause with its owner's ID in the API, which is the external ID for an end user. */
export type PauseWithOwner = { readonly pause: Pause; readonly name: string };

export const pauseSchema = z.object({
  scope: z.enum(BUDGET_SCOPES),
  id: z.optional(labelSchema(256)),
  reason: labelSchema(200),
  until: z.nullish(timeSchema),
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
