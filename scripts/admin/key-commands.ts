import { Option } from "commander";
import type { Command } from "commander";
import { deleteKey, getKey, getKeys, patchKey, postMemberKey } from "../admin-client.ts";
import { idText, memberName, organizationName, whole } from "./arguments.ts";
import { SCOPES } from "./records.ts";
import type { MemberKey, Scope } from "./records.ts";
import { does, examples, group, memberIds, note, organizationId, show } from "./session.ts";
import type { Session } from "./session.ts";
import { keyFields, keyTable } from "./words.ts";

const RPM_MAX = 1000;

/** `keys ...`: an operator's hand on any key. */
export function addKeyCommands(program: Command): void {
  const keys = group(program, "keys", "API keys of an organisation");
  examples(
    keys,
    "keys create --local eu example --member owner@example.com --name Server",
    "keys list --local eu example",
    "keys revoke --local eu example key_0VbYLVeiej0Be1V2ivdE8L5o",
  );
  addCreate(keys);
  addReads(keys);
  addChanges(keys);
}

type NewKey = {
  readonly member: string;
  readonly name: string;
  readonly scope: Scope;
  readonly rpmLimit?: number;
};

function addCreate(keys: Command): void {
  const create = keys
    .command("create")
    .description("make a key for a member; the key alone goes to stdout, and is shown once")
    .argument("<org>", "id or slug", organizationName)
    .requiredOption("--member <member>", "whose it is: id or email address", memberName)
    .requiredOption("--name <name>", "what it is for")
    .addOption(
      new Option("--scope <scope>", "where it works: at home or everywhere")
        .choices(SCOPES)
        .default("regional"),
    )
    .option(
      "--rpm-limit <number>",
      "requests per minute, 1 to 1000 (default 60)",
      whole(1, RPM_MAX),
    );
  examples(
    create,
    "keys create --local eu example --member owner@example.com --name Server",
    "keys create --local eu example --member owner@example.com --name Edge --scope global --rpm-limit 600",
  );
  does(create, async (session, [org]: [string], { member, name, scope, rpmLimit }: NewKey) => {
    const ids = await memberIds(session, org, member);
    const limit = rpmLimit === undefined ? {} : { rpm_limit: rpmLimit };
    const answer = await postMemberKey(session.admin, ids, { name, scope, ...limit });
    show(session, answer, () => answer.key);
    note(`${answer.id}, ${answer.scope}, ${answer.rpm_limit} requests per minute.`);
    note("The key is shown this once: keep it now.");
  });
}

function addReads(keys: Command): void {
  const list = keys
    .command("list")
    .description("all keys, revoked ones too")
    .argument("<org>", "id or slug", organizationName);
  examples(list, "keys list --local eu example");
  does(list, async (session, [org]: [string]) => {
    const answer = await getKeys(session.admin, await organizationId(session, org));
    show(session, answer, () => keyTable(answer.keys));
  });

  const one = aboutKey(keys, "show", "one key");
  examples(one, "keys show --local eu example key_0VbYLVeiej0Be1V2ivdE8L5o");
  does(one, async (session, [org, keyId]: [string, string]) => {
    const orgId = await organizationId(session, org);
    showKey(session, await getKey(session.admin, { orgId, keyId }));
  });
}

function addChanges(keys: Command): void {
  const limit = aboutKey(keys, "limit", "change a key's requests per minute, at once");
  limit.argument("<rpm>", "1 to 1000", whole(1, RPM_MAX));
  examples(limit, "keys limit --local eu example key_0VbYLVeiej0Be1V2ivdE8L5o 600");
  does(limit, async (session, [org, keyId, rpm_limit]: [string, string, number]) => {
    const orgId = await organizationId(session, org);
    showKey(session, await patchKey(session.admin, { orgId, keyId }, { rpm_limit }));
    note(`${keyId} may now be used ${rpm_limit} times a minute.`);
  });

  const rename = aboutKey(keys, "rename", "change a key's name");
  rename.argument("<name>", "its new name");
  examples(rename, 'keys rename --local eu example key_0VbYLVeiej0Be1V2ivdE8L5o "Old server"');
  does(rename, async (session, [org, keyId, name]: [string, string, string]) => {
    const orgId = await organizationId(session, org);
    showKey(session, await patchKey(session.admin, { orgId, keyId }, { name }));
    note(`${keyId} has its new name.`);
  });

  const revoke = aboutKey(keys, "revoke", "end a key for good: the next request with it is a 401");
  examples(revoke, "keys revoke --local eu example key_0VbYLVeiej0Be1V2ivdE8L5o");
  does(revoke, async (session, [org, keyId]: [string, string]) => {
    const orgId = await organizationId(session, org);
    showKey(session, await deleteKey(session.admin, { orgId, keyId }));
    note(`${keyId} is revoked.`);
  });
}

function aboutKey(keys: Command, name: string, description: string): Command {
  return keys
    .command(name)
    .description(description)
    .argument("<org>", "id or slug", organizationName)
    .argument("<key>", "the key's id, key_...; never the key itself", idText);
}

function showKey(session: Session, key: MemberKey): void {
  show(session, key, () => keyFields(key));
}
