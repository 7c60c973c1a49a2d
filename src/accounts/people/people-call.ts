import type { IssuerEntry } from "../../shared/config/config.ts";
import type { Objects } from "../../shared/contracts/objects.ts";
import type { Answer } from "../../shared/http/endpoint.ts";
import type { KeyServices } from "../keys/revocation.ts";
import type { Actor } from "../../shared/event.ts";
import type { Result } from "../../shared/failure.ts";
import type { SendMail } from "./mail.ts";
import type { ActingPerson } from "./people.store.ts";

/** What sign-up gives and how often it may be asked: the vars of their names. */
type SignUpRules = {
  readonly mode: "off" | "approve" | "on";
  readonly anHour: number;
  readonly aDayAnAddress: number;
  readonly creditMicro: number;
  readonly creditsADayMicro: number;
};

/** What everything about people works with; `now` is one clock read for the request, Unix ms. */
export type PeopleServices = KeyServices &
  Pick<Objects, "deliveries"> & {
    /** Has the organization's wallet take what was told in the book, after the answer. */
    readonly takeEvents: (orgId: string) => void;
    readonly signUp: SignUpRules;
    readonly companyDomains: "off" | "approve" | "on";
    /** Null: links are shown and not sent. */
    readonly mail: SendMail | null;
    /** Whether an issuer of this machine will do. */
    readonly isSandbox: boolean;
    /** Whether an issuer answers as one; `issuer_unreachable`. */
    readonly reachIssuer: (entry: IssuerEntry) => Promise<Result<null>>;
    /** This console's address: `https://eu.example.com`. */
    readonly origin: string;
  };

/** A person's session as they see it. */
export type SessionSummary = {
  readonly id: string;
  readonly browser: string;
  readonly issuer: string;
  readonly openedAt: number;
  readonly freshAt: number;
  readonly freshBy: string;
  readonly expiresAt: number;
};

/** The sessions of who calls. */
export type OwnSessions = {
  /** The one that calls. */
  readonly id: string;
  list(): Promise<Result<readonly SessionSummary[]>>;
  /** Null: all. */
  close(id: string | null): Promise<Result<null>>;
  /** Acts as another member from now on; null: as none. */
  act(as: { readonly memberId: string; readonly orgId: string } | null): Promise<Result<null>>;
};

/** One call of a person, who may act as a member. */
export type PeopleCall = PeopleServices &
  ActingPerson & {
    readonly sessions: OwnSessions;
    /** '': the session began at one of the operator's issuers; an organization's id: at its own, and it opens that alone. */
    readonly realm: string;
    /** The Entra tenant that the session came in by, or null. */
    readonly tenant: string | null;
    readonly params: Readonly<Record<string, string>>;
    readonly body: unknown;
  };

/** One call of a member. */
export type MemberCall = PeopleCall & { readonly as: NonNullable<ActingPerson["as"]> };

/** Whom the events of a call name. */
export function memberActor(memberId: string): Actor {
  return { kind: "member", id: memberId };
}

export type PeopleHandler<Call> = (call: Call) => Promise<Answer>;
