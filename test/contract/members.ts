import { env } from "cloudflare:workers";
import { expect } from "vitest";
import type { Role } from "../../src/lib/caller.ts";
import { admin } from "./client.ts";

export type MadeKey = { readonly id: string; readonly key: string };

/** A new member of an organisation, in the book as an operator's call leaves it. */
export async function addMember(orgId: string, role: Role): Promise<string> {
  const id = crypto.randomUUID();
  await env.DB.prepare(
    "INSERT INTO members (id, org_id, email, role, created_at) VALUES (?, ?, ?, ?, ?)",
  )
    .bind(id, orgId, `${role}@example.com`, role, 1)
    .run();
  return id;
}

/** One more key of a member, for 1000 requests a minute. */
export async function addKey(orgId: string, memberId: string): Promise<MadeKey> {
  const path = `/orgs/${orgId}/members/${memberId}/keys`;
  const response = await admin("POST", path, { name: "more", rpm_limit: 1000 });
  expect(response.status).toBe(201);
  return response.json<MadeKey>();
}

/** The key of a new member with this role. */
export async function keyWithRole(orgId: string, role: Role): Promise<string> {
  return (await addKey(orgId, await addMember(orgId, role))).key;
}
