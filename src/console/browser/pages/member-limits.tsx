import type { TeamMember } from "../api/types.ts";
import { change, useRead } from "../state/reads.ts";
import { Budgets } from "../ui/budgets.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { PolicyPart } from "../ui/policy.tsx";
import { ReadResult } from "../ui/states.tsx";

export const CHANGE_MEMBER = "PATCH /v1/members/{id}";
const TOUCHES = ["/v1/members"];

export function MemberLimits({
  member: { id },
  title,
  onClose,
}: {
  member: TeamMember;
  title: string;
  onClose: () => void;
}) {
  const path = { id };
  const read = useRead("GET /v1/members/{id}", { path }, { every: 10_000 });
  return (
    <Dialog title={title} onClose={onClose} wide>
      <ReadResult read={read} height={240}>
        {({ budgets, policy }) => (
          <>
            <p>These limits apply to all keys of this member together.</p>
            <h3>Budgets</h3>
            <Budgets
              budgets={budgets}
              save={(list) => change(CHANGE_MEMBER, { path, body: { budgets: list } }, TOUCHES)}
            />
            <h3>Policy</h3>
            <PolicyPart
              policy={policy}
              save={(one) => change(CHANGE_MEMBER, { path, body: { policy: one } }, TOUCHES)}
            />
          </>
        )}
      </ReadResult>
    </Dialog>
  );
}
