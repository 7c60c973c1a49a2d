import { env } from "cloudflare:workers";
import { expect } from "vitest";
import type { Role } from "../../src/shared/caller.ts";
import { admin } from "./client.ts";

export type MadeKey = { readonly id: string; readonly key: string };

export async function addMember(orgId: string, role: Role): Promise<string> {
  const email = `${crypto.randomUUID()}@example.com`;
  const response = await admin("POST", `/orgs/${orgId}/members`, { email, role });
  expect(response.status).toBe(201);
  return (await response.json<{ id: string }>()).id;
}

/** Creates another key of a member, for 1,000 requests per minute. */
export async function addKey(orgId: string, memberId: string): Promise<MadeKey> {
  const path = `/orgs/${orgId}/members/${memberId}/keys`;
  const response = await admin("POST", path, { name: "more", rpm_limit: 1000 });
  expect(response.status).toBe(201);
  return response.json<MadeKey>();
}

export async function keyWithRole(orgId: string, role: Role): Promise<string> {
  return (await addKey(orgId, await addMember(orgId, role))).key;
}

/** Suspends the organization in its wallet, the database or both, as an operator's call does. */
export async function suspend(orgId: string, where: readonly ("wallet" | "book")[]): Promise<void> {
  if (where.includes("wallet")) {
    expect((await env.WALLET.getByName(orgId).configure({ suspended: true })).ok).toBe(true);
  }
  if (where.includes("book")) {
    await env.DB.prepare("UPDATE organizations SET status = 'suspended' WHERE id = ?")
      .bind(orgId)
      .run();
  }
}
