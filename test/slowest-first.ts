import { BaseSequencer } from "vitest/node";
import type { TestSpecification } from "vitest/node";

/**
 * Returns a sequencer that starts the files that match `slow` first, so that no worker ends long
 * after the others.
 */
export function slowestFirst(slow: RegExp): typeof BaseSequencer {
  const isSlow = ({ moduleId }: TestSpecification): boolean => slow.test(moduleId);
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      // oxlint-disable-next-line unicorn/no-array-sort -- the method of the sequencer
      const sorted = await super.sort(files);
      return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
    }
  };
}
