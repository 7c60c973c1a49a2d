import * as z from "zod";
import { EMAIL_EVENT_TYPES } from "../../src/events/notifications/notification-text.ts";
import { record } from "./fields.ts";
import { member } from "./records.ts";

const time = z.iso.datetime();
const role = z.enum(["owner", "admin", "billing", "member"]);

const invitation = {
  id: z.string(),
  role,
  email: z
    .string()
    .nullable()
    .describe("Confirmed address that the person must have; null for anyone with the link."),
  member_id: z.string().nullable().describe("The member that gets a login; null for a new member."),
  created_at: time,
  expires_at: time,
};
export const madeInvitation = record("MadeInvitation", {
  ...invitation,
  link: z.string().describe("Send this link to the invited person."),
  mailed: z.boolean().describe("Whether the link was also sent by email."),
});
export const invitations = record("Invitations", {
  invitations: z.array(record("Invitation", { ...invitation, inviter: z.string().nullable() })),
});
export const shownInvitation = record("ShownInvitation", {
  organization: z.string(),
  role,
  inviter: z.string().nullable(),
  email: z.string().nullable().describe("Only its first letter and its host; the rest is hidden."),
  expires_at: time,
  region: z.string(),
});
export const domain = record("CompanyDomain", {
  domain: z.string(),
  record: z
    .strictObject({ name: z.string(), value: z.string() })
    .describe("The TXT record that proves it."),
  proven_at: time.nullable(),
  approved: z.boolean().describe("Whether the operator has approved the domain, if required."),
  lost_since: time.nullable().describe("Time when the TXT record was first missing."),
  joins_by: z
    .array(z.enum(["google", "entra"]))
    .describe("Providers with whose accounts people can join."),
});
export const companyIssuer = record("CompanyIssuer", {
  callback: z.string().describe("The callback URL for the identity provider."),
  issuer: z.string().nullable(),
  client_id: z.string().nullable(),
  state: z.enum(["none", "draft", "on"]).describe("With `draft`, nobody can log in with it yet."),
  required: z.boolean().describe("Whether the organization requires this login."),
  created_at: time.nullable(),
});
export const domains = record("CompanyDomains", { domains: z.array(domain) });
export const organizationDomains = record("OrganizationDomains", {
  domains: z.array(domain),
  has_own_login: z
    .boolean()
    .describe("Whether the domain has its own identity provider, including a draft."),
});
export const notifications = record("Notifications", {
  email: z
    .string()
    .nullable()
    .describe("The person's confirmed address. Null if no email is sent."),
  is_available: z.boolean().describe("Whether this region can send email."),
  types: z.array(z.enum(EMAIL_EVENT_TYPES)),
  available_types: z
    .array(z.enum(EMAIL_EVENT_TYPES))
    .describe("The types that the person's role can receive."),
});
export const ended = record("Ended", { id: z.string(), ended: z.literal(true) });
export const team = record("Team", {
  members: z.array(
    record("TeamMember", {
      id: z.string(),
      name: z.string().nullable(),
      email: z.string().nullable().describe("Only for owners, admins and the person."),
      role,
      logs_in: z.boolean().describe("False if the member has only keys."),
      keys: z.int().min(0),
      created_at: time,
      last_seen_at: time.nullable(),
    }),
  ),
});
export const changedMember = member;

const membership = record("Membership", {
  id: z.string(),
  name: z.string(),
  slug: z.string(),
  status: z.enum(["active", "suspended"]),
  is_personal: z.boolean(),
  member_id: z.string(),
  role,
});
export const actsAs = membership;
const meFields = {
  person: z.strictObject({ id: z.string(), name: z.string(), email: z.string().nullable() }),
  identities: z.array(
    z.strictObject({
      issuer: z.string(),
      subject: z.string(),
      created_at: time,
      last_used_at: time,
    }),
  ),
  organizations: z.array(membership),
  closed_organizations: z
    .array(z.strictObject({ id: z.string(), name: z.string(), restorable_until: time }))
    .describe("Organizations that an owner closed, and that this person can restore."),
  sessions: z.array(
    z.strictObject({
      id: z.string(),
      is_this: z.boolean(),
      browser: z.string(),
      issuer: z.string(),
      created_at: time,
      logged_in_at: time,
      logged_in_by: z.enum(["auth_time", "exchange"]),
      expires_at: time,
    }),
  ),
};
export const restored = record("RestoredOrganization", {
  id: z.string(),
  restored: z.literal(true),
});
export const me = record("Me", meFields);
export const myExport = record("MyExport", {
  ...meFields,
  memberships: z.array(z.looseObject({})),
  invitations: z.array(z.looseObject({})),
  events: z.array(z.looseObject({})),
});
export const organizationExport = z
  .record(z.string(), z.array(z.looseObject({})))
  .meta({ id: "OrganizationExport" });
export const accepted = record("Accepted", { organization_id: z.string(), member_id: z.string() });
export const ownOrganization = record("OwnOrganization", {
  id: z.string(),
  member_id: z.string(),
  is_personal: z.boolean(),
});
export const teamOrganization = record("TeamOrganization", {
  id: z.string(),
  is_personal: z.literal(false),
});
export const endedAll = record("EndedAll", { ended: z.literal(true) });
