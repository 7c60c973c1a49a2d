import type { Budget, BudgetStatus } from "../budgets.ts";
import type { Actor } from "../event.ts";
import type { Micros } from "../money.ts";

/** The limits of an end user. A null quota means no limit. A quota of 0 rejects all requests. */
type EndUserLimits = {
  readonly dailyQuotaMicro: Micros | null;
  readonly monthlyQuotaMicro: Micros | null;
  readonly alertThreshold: number;
};
export type EndUser = EndUserLimits & {
  readonly id: string;
  readonly externalId: string;
  readonly createdAt: number;
};
/** A change of an end user. Releases before 1.2.0 send no actor and cause no event. */
export type EndUserUpdate = {
  readonly [K in keyof EndUserLimits]?: EndUserLimits[K] | undefined;
} & { readonly budgets?: readonly Budget[] | undefined; readonly actor?: Actor };
export type EndUserRecord = EndUser & {
  readonly monthlySpendMicro: Micros;
  readonly dailySpendMicro: Micros;
  readonly budgets: readonly BudgetStatus[];
};
export type PutEndUserResult = { readonly created: boolean; readonly endUser: EndUserRecord };
export type EndUserPage = {
  readonly endUsers: readonly EndUserRecord[];
  readonly total: number;
  readonly nextAfter: string | null;
};
