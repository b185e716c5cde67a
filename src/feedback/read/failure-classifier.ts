/**
 * The judgements of one report: each text in it is classified once, however many recipients it is said of. So the cost of a
 * report grows with its length, and not with recipients times groups times text. Pure but for what it remembers.
 */

import { classifyFailure, type FailureClassification } from './classify-failure.ts';
import { DELAY_PHRASES } from './kind-phrases.ts';
import { containsPhrase, normalizeText } from './phrases.ts';

/** What has been classified so far, in texts and in characters of them. */
export interface ClassifierCost {
  readonly texts: number;
  readonly characters: number;
}

export interface FailureClassifier {
  /** As `judge` of classify-failure.ts. */
  readonly classify: (words: string, status: string | null) => FailureClassification;
  /** Whether the words say that somebody still tries. */
  readonly reportsDelay: (words: string) => boolean;
  readonly cost: () => ClassifierCost;
}

/** One for each report. */
export function createFailureClassifier(): FailureClassifier {
  const judged = new Map<string, Map<string | null, FailureClassification>>();
  const waiting = new Map<string, boolean>();
  let texts = 0;
  let characters = 0;
  const classified = (words: string): void => {
    texts += 1;
    characters += words.length;
  };
  return {
    classify(words, status) {
      const byStatus = judged.get(words) ?? new Map<string | null, FailureClassification>();
      const known = byStatus.get(status);
      if (known !== undefined) return known;
      classified(words);
      const found = classifyFailure(words, status);
      judged.set(words, byStatus.set(status, found));
      return found;
    },
    reportsDelay(words) {
      const known = waiting.get(words);
      if (known !== undefined) return known;
      classified(words);
      const found = containsPhrase(normalizeText(words), DELAY_PHRASES);
      waiting.set(words, found);
      return found;
    },
    cost: () => ({ texts, characters }),
  };
}
