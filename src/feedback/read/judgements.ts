/**
 * The judgements of one report: each text in it is classified once, however many recipients it is said of. So the cost of a
 * report grows with its length, and not with recipients times groups times text. Pure but for what it remembers.
 */
import { holds, plainWords } from './phrases.ts';
import { WAITING } from './signs.ts';
import { type Judgement, judge } from './verdict.ts';

/** What has been classified so far, in texts and in characters of them. */
export interface JudgementCost {
  readonly texts: number;
  readonly characters: number;
}

export interface Judgements {
  /** As `judge` of verdict.ts. */
  readonly judge: (words: string, status: string | null) => Judgement;
  /** Whether the words say that somebody still tries. */
  readonly waits: (words: string) => boolean;
  readonly cost: () => JudgementCost;
}

/** One for each report. */
export function createJudgements(): Judgements {
  const judged = new Map<string, Map<string | null, Judgement>>();
  const waiting = new Map<string, boolean>();
  let texts = 0;
  let characters = 0;
  const classified = (words: string): void => {
    texts += 1;
    characters += words.length;
  };
  return {
    judge(words, status) {
      const byStatus = judged.get(words) ?? new Map<string | null, Judgement>();
      const known = byStatus.get(status);
      if (known !== undefined) return known;
      classified(words);
      const found = judge(words, status);
      judged.set(words, byStatus.set(status, found));
      return found;
    },
    waits(words) {
      const known = waiting.get(words);
      if (known !== undefined) return known;
      classified(words);
      const found = holds(plainWords(words), WAITING);
      waiting.set(words, found);
      return found;
    },
    cost: () => ({ texts, characters }),
  };
}
