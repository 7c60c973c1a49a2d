import { readSession } from "../api/client.ts";
import { latestOf, useCustomRead } from "../state/reads.ts";
import { useSession } from "../state/session.ts";
import { PauseOrganization, OrganizationPauses } from "../ui/pauses.tsx";
import { Notice } from "../ui/basics.tsx";

const EVERY_MS = 15_000;
const CAUSES = {
  suspended: "This organization is suspended. Contact the operator to resume it.",
  closed: "This organization is closed. Operators can restore it for 7 days.",
} as const;

/** Notices above each page while the organization can't spend. */
export function Halted() {
  const { organization } = useSession();
  const read = useCustomRead("/console/api/session", readSession, { every: EVERY_MS });
  const newest = latestOf(read)?.organization;
  const status = (newest?.id === organization?.id ? newest : organization)?.status ?? "active";
  return (
    <section class="halted" aria-label="Restrictions">
      {status !== "active" && <Notice>■ {CAUSES[status]}</Notice>}
      <OrganizationPauses />
    </section>
  );
}

export { PauseOrganization };
