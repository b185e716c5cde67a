/** What has changed in the store since it was last looked at, whoever did it: another node, the command line, this process. */

import type { ChangeMarks } from '../model/overview.ts';
import type { Topic } from '../model/topic.ts';
import type { AccessStore, OverviewStore } from '../store/contract.ts';

/** Entries of the audit log that one look reads at most; where there are more, all that operators change is told. */
const MOST_ENTRIES = 50;

/** What the first word of an audited action is about. */
const SUBJECTS: Readonly<Record<string, readonly Topic[]>> = {
  account: ['accounts', 'overview'],
  key: ['accounts', 'overview'],
  domain: ['domains', 'overview'],
  suppression: ['suppressions'],
  message: ['messages', 'overview'],
  token: [],
};
const ALL: readonly Topic[] = [...new Set(Object.values(SUBJECTS).flat())];

export function storeChanges(
  store: Pick<OverviewStore, 'changeMarks'> & Pick<AccessStore, 'listAudit'>,
  now: () => number,
): () => Promise<readonly Topic[]> {
  let before: ChangeMarks | null = null;
  return async () => {
    const marks = await store.changeMarks(now());
    const last = before ?? marks;
    const topics: Topic[] = [];
    if (marks.newestId !== last.newestId) topics.push('messages', 'overview');
    if (marks.counted !== last.counted) topics.push('messages', 'overview', 'inbox');
    if (marks.refused !== last.refused) topics.push('suppressions');
    if (marks.audit !== last.audit) {
      const entries = (await store.listAudit(null, MOST_ENTRIES)).filter(({ id }) => id > last.audit);
      const words = entries.map(({ action }) => action.split('.')[0] ?? '');
      topics.push('audit', ...(entries.length < MOST_ENTRIES ? words.flatMap((word) => SUBJECTS[word] ?? ALL) : ALL));
    }
    // Only now: a look that failed on the way is made again.
    before = marks;
    return topics;
  };
}
