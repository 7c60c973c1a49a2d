import * as z from "zod/mini";
import { ID_CHARACTERS } from "./id.ts";
import type { Micros } from "./money.ts";
import { REGIONS, regionNamed } from "./regions.ts";
import type { Tags } from "./tags.ts";
import type { Region } from "./regions.ts";

/** The payer of a placed hold: the organization's balance, or only its budgets and quotas. */
export const PAYS = ["balance", "quota"] as const;

/** The purpose of a hold that a client places itself, rather than by a model call. */
export type Purpose = {
  readonly pays: (typeof PAYS)[number];
  /** The operator's service that captures the hold; null if the client captures it. */
  readonly merchant: string | null;
  readonly description: string;
  /** Absent for none. */
  readonly tags?: Tags;
};

/** A purpose as stored. The amounts are those of a quota hold, which is 0 in the ledger. */
export type StoredPurpose = Purpose & { readonly held?: Micros; readonly charged?: Micros };

export const purposeSchema: z.ZodMiniType<Purpose> = z.object({
  pays: z.enum(PAYS),
  merchant: z.nullable(z.string()),
  description: z.string(),
  tags: z.exactOptional(z.record(z.string(), z.string())),
});

/** The hold of an ID that clients use: its request, its organization and their home. */
export type HoldName = {
  readonly id: string;
  readonly orgId: string;
  readonly home: Region;
};

const PREFIX = "hold_";
const REQUEST = "req_";
const NAME = new RegExp(
  `^${PREFIX}(${REGIONS.join("|")})_([0-9A-Za-z]{${ID_CHARACTERS}})_([\\w-]{1,64})$`,
);

/** Returns the ID that clients use. It includes the organization, because merchants act for many. */
export function holdNameOf({ id, orgId, home }: HoldName): string {
  return `${PREFIX}${home}_${id.slice(REQUEST.length)}_${orgId}`;
}

/** Parses an ID that clients use, or returns null. */
export function readHoldName(name: string): HoldName | null {
  const [, region, id, orgId] = NAME.exec(name) ?? [];
  const home = regionNamed(region);
  if (home === undefined || id === undefined || orgId === undefined) return null;
  return { id: REQUEST + id, orgId, home };
}

/** Returns the name under which usage and receipts list a charge. */
export function modelOfPurpose({ merchant }: Purpose): string {
  return `charge/${merchant ?? OWN}`;
}

/** The place of a merchant's name in charges without one, so no merchant may have it. */
export const OWN = "own";
