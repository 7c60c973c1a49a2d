import { Option } from "commander";
import type { Command } from "commander";
import {
  getOrganization,
  getOrganizations,
  patchOrganization,
  postOrganization,
} from "../admin-client.ts";
import { limitOrNone, organizationName, whole, WrongUsage } from "./arguments.ts";
import { SCOPES } from "./records.ts";
import type { Scope } from "./records.ts";
import { does, examples, group, note, noteRest, organizationId, show } from "./session.ts";
import { fields, organizationFields, organizationTable } from "./words.ts";

const OFFSET_MAX = 1_000_000_000;
const RPM_MAX = 1000;

type NewOrganization = {
  readonly name: string;
  readonly slug: string;
  readonly ownerEmail: string;
  readonly keyScope?: Scope;
  readonly rpmLimit?: number;
  readonly personal?: true;
};

/** `orgs ...`: who pays. */
export function addOrganizationCommands(program: Command): void {
  const orgs = group(program, "orgs", "organisations: who pays");
  examples(
    orgs,
    "orgs create --local eu --name Example --slug example --owner-email owner@example.com",
    "orgs list --local eu",
    "orgs suspend --local eu example",
  );
  addCreate(orgs);
  addReads(orgs);
  addChanges(orgs);
}

function addCreate(orgs: Command): void {
  const create = orgs
    .command("create")
    .description("make an organisation with its owner and its first key; the key is shown once")
    .requiredOption("--name <name>", "what people call it")
    .requiredOption("--slug <slug>", "3 to 32 of a-z, 0-9 and hyphens, unique in the region")
    .requiredOption("--owner-email <email>", "its first member, an owner")
    .addOption(new Option("--key-scope <scope>", "of the first key").choices(SCOPES))
    .option("--rpm-limit <number>", "requests per minute of the first key", whole(1, RPM_MAX))
    .option("--personal", "it is one person's own");
  examples(
    create,
    "orgs create --local eu --name Example --slug example --owner-email owner@example.com",
    "orgs create --local eu --name Shop --slug shop --owner-email it@shop.example --key-scope global --json",
  );
  does(create, async (session, _: [], options: NewOrganization) => {
    const answer = await postOrganization(session.admin, {
      name: options.name,
      slug: options.slug,
      owner_email: options.ownerEmail,
      key_scope: options.keyScope,
      rpm_limit: options.rpmLimit,
      is_personal: options.personal,
    });
    const { organization, member, key } = answer;
    show(session, answer, () =>
      fields([
        ["organisation", organization.id],
        ["slug", organization.slug],
        ["owner", `${member.email} (${member.id})`],
        ["key id", key.id],
        ["key", key.key],
      ]),
    );
    note("The key is shown this once: keep it now.");
  });
}

function addReads(orgs: Command): void {
  const list = orgs
    .command("list")
    .description("organisations with their credits")
    .option("--limit <number>", "at most so many, 1 to 100", whole(1, 100), 50)
    .option("--offset <number>", "leave out so many at the start", whole(0, OFFSET_MAX), 0);
  examples(list, "orgs list --local eu", "orgs list --local eu --limit 100 --offset 100 --json");
  does(list, async (session, _: [], { limit, offset }: { limit: number; offset: number }) => {
    const answer = await getOrganizations(session.admin, { limit, offset });
    show(session, answer, () => organizationTable(answer.organizations));
    noteRest({ shown: answer.organizations.length, offset, total: answer.total });
  });

  const one = orgs
    .command("show")
    .description("an organisation with its credits and open holds")
    .argument("<org>", "id or slug", organizationName);
  examples(one, "orgs show --local eu example");
  does(one, async (session, [name]: [string]) => {
    const answer = await getOrganization(session.admin, await organizationId(session, name));
    show(session, answer, () => organizationFields(answer));
  });
}

function addChanges(orgs: Command): void {
  const rename = orgs
    .command("rename")
    .description("change an organisation's name or slug")
    .argument("<org>", "id or slug", organizationName)
    .option("--name <name>", "its new name")
    .option("--slug <slug>", "its new slug");
  examples(rename, 'orgs rename --local eu example --name "Example Ltd" --slug example-ltd');
  does(rename, async (session, [org]: [string], options: { name?: string; slug?: string }) => {
    const { name, slug } = options;
    if (name === undefined && slug === undefined) throw new WrongUsage("Give --name or --slug.");
    await change(session, org, { name, slug });
  });

  const suspend = orgs
    .command("suspend")
    .description("refuse an organisation's paid calls and writes (403); its reads still work")
    .argument("<org>", "id or slug", organizationName);
  examples(suspend, "orgs suspend --local eu example");
  does(suspend, (session, [org]: [string]) => change(session, org, { status: "suspended" }));

  const resume = orgs
    .command("resume")
    .description("let a suspended organisation call again")
    .argument("<org>", "id or slug", organizationName);
  examples(resume, "orgs resume --local eu example");
  does(resume, (session, [org]: [string]) => change(session, org, { status: "active" }));

  const limit = orgs
    .command("limit")
    .description("bound an organisation's paid requests per minute, over all its keys")
    .argument("<org>", "id or slug", organizationName)
    .argument("<rpm>", "paid requests per minute, or none", limitOrNone);
  examples(limit, "orgs limit --local eu example 5000", "orgs limit --local eu example none");
  does(limit, (session, [org, rpm_limit]: [string, number | null]) =>
    change(session, org, { rpm_limit }),
  );
}

/** Changes an organisation, shows it as it is then, and says on stderr what was done. */
async function change(
  session: Parameters<typeof organizationId>[0],
  name: string,
  changes: object,
): Promise<void> {
  const id = await organizationId(session, name);
  const answer = await patchOrganization(session.admin, id, changes);
  show(session, answer, () => organizationFields(answer));
  const done = Object.entries(changes)
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => `${field} is now ${value ?? "none"}`);
  note(`${answer.slug}: ${done.join(", ")}.`);
}
