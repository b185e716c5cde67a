/**
 * Classifies the failures of one report and caches the results, so that each text is classified once for all
 * recipients. The cost of a report is therefore linear in its length.
 */

import { classifyFailure, type FailureClassification } from './classify-failure.ts';
import { DELAY_PHRASES } from './kind-phrases.ts';
import { containsPhrase, normalizeText } from './phrases.ts';

/** The number of classified texts, and the sum of their lengths in characters. */
export interface ClassifierCost {
  readonly textCount: number;
  readonly characterCount: number;
}

export interface FailureClassifier {
  /** Classifies a text and a status, and caches the result. */
  readonly classify: (text: string, status: string | null) => FailureClassification;
  /** Returns true if the text reports that a server still retries, and caches the result. */
  readonly reportsDelay: (text: string) => boolean;
  readonly cost: () => ClassifierCost;
}

/** Creates the classifier of one report. */
export function createFailureClassifier(): FailureClassifier {
  const classificationsByText = new Map<string, Map<string | null, FailureClassification>>();
  const delayResults = new Map<string, boolean>();
  let textCount = 0;
  let characterCount = 0;
  const addCost = (text: string): void => {
    textCount += 1;
    characterCount += text.length;
  };
  return {
    classify(text, status) {
      const classificationsByStatus =
        classificationsByText.get(text) ?? new Map<string | null, FailureClassification>();
      const cachedClassification = classificationsByStatus.get(status);
      if (cachedClassification !== undefined) return cachedClassification;
      addCost(text);
      const result = classifyFailure(text, status);
      classificationsByText.set(text, classificationsByStatus.set(status, result));
      return result;
    },
    reportsDelay(text) {
      const cachedResult = delayResults.get(text);
      if (cachedResult !== undefined) return cachedResult;
      addCost(text);
      const result = containsPhrase(normalizeText(text), DELAY_PHRASES);
      delayResults.set(text, result);
      return result;
    },
    cost: () => ({ textCount, characterCount }),
  };
}
