import * as z from "zod/mini";
import { ID_CHARACTERS } from "./id.ts";
import type { Micros } from "./money.ts";
import { REGIONS, findRegion } from "./regions.ts";
import type { Tags } from "./tags.ts";
import type { Region } from "./regions.ts";

/**
 * The ways to pay a client's hold: from the balance, or not at all, so that it only counts toward
 * budgets and quotas.
 */
export const HOLD_PAYMENTS = ["balance", "quota"] as const;

/** The terms of a client's hold. */
export type HoldPurpose = {
  readonly pays: (typeof HOLD_PAYMENTS)[number];
  /** The operator's service that can capture the hold. Null if only the client can. */
  readonly merchant: string | null;
  readonly description: string;
  readonly tags?: Tags;
  readonly sessionTags?: readonly string[];
};

export function copyHoldPurpose(hold: HoldPurpose): HoldPurpose {
  const { pays, merchant, description, tags, sessionTags } = hold;
  return {
    pays,
    merchant,
    description,
    ...(tags && { tags }),
    ...(sessionTags && { sessionTags }),
  };
}

/** A stored purpose. `held` and `charged` are set only if a quota pays. */
export type StoredHoldPurpose = HoldPurpose & { readonly held?: Micros; readonly charged?: Micros };

export const holdPurposeSchema: z.ZodMiniType<HoldPurpose> = z.object({
  pays: z.enum(HOLD_PAYMENTS),
  merchant: z.nullable(z.string()),
  description: z.string(),
  tags: z.exactOptional(z.record(z.string(), z.string())),
  sessionTags: z.exactOptional(z.array(z.string())),
});

type HoldName = {
  readonly id: string;
  readonly orgId: string;
  readonly home: Region;
};

const PREFIX = "hold_";
const REQUEST_PREFIX = "req_";
const NAME = new RegExp(
  `^${PREFIX}(${REGIONS.join("|")})_([0-9A-Za-z]{${ID_CHARACTERS}})_([\\w-]{1,64})$`,
);

/** Returns a hold's ID in the API, which contains region and organization. */
export function holdNameOf({ id, orgId, home }: HoldName): string {
  return `${PREFIX}${home}_${id.slice(REQUEST_PREFIX.length)}_${orgId}`;
}

/** Parses a name `hold_{region}_{id}_{organization}`. */
export function parseHoldName(name: string): HoldName | null {
  const [, region, id, orgId] = NAME.exec(name) ?? [];
  const home = findRegion(region);
  if (home === undefined || id === undefined || orgId === undefined) return null;
  return { id: REQUEST_PREFIX + id, orgId, home };
}

/** Returns the name that usage shows in place of a model for a client's hold. */
export function modelNameOfPurpose({ merchant }: HoldPurpose): string {
  return `charge/${merchant ?? OWN_MERCHANT_NAME}`;
}

/** The reserved merchant name of charges without a merchant. */
export const OWN_MERCHANT_NAME = "own";
