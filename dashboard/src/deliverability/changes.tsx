/**
 * Lists the significant changes since the previous period, one sentence per change. The link in a sentence about a row
 * selects the row.
 */
import { Anchor } from '@mantine/core';
import { IconArrowDownRight, IconArrowUpRight, IconCheck, IconMinus, type TablerIcon } from '@tabler/icons-react';
import { useState } from 'react';
import type { Deliverability, DeliverabilityChange } from '../../../src/operations/deliverability.ts';
import { Card } from '../parts/card';
import { type ComparedPeriods, PeriodNote } from '../parts/change';
import { formatCount } from '../parts/number';

/** The number of changes that are shown initially. */
const MAX_INITIAL_CHANGES = 5;

const JUDGEMENT_STYLES: Readonly<Record<DeliverabilityChange['judgement'], readonly [tone: string, Icon: TablerIcon]>> =
  {
    worse: ['bounced', IconArrowDownRight],
    better: ['delivered', IconArrowUpRight],
    neutral: ['neutral', IconMinus],
  };
const JUDGEMENT_WORDS: Readonly<Record<DeliverabilityChange['judgement'], string>> = {
  worse: 'Worse: ',
  better: 'Better: ',
  neutral: '',
};

interface ChangesProps {
  readonly changes: Deliverability['changes'];
  readonly periods: ComparedPeriods;
  readonly onSelect: (key: string) => void;
}

export function Changes({ changes, periods, onSelect }: ChangesProps) {
  const [showAll, setShowAll] = useState(false);
  const shownChanges = showAll ? changes : changes.slice(0, MAX_INITIAL_CHANGES);
  const hiddenCount = changes.length - shownChanges.length;
  return (
    <Card title="What changed" secondary={<PeriodNote {...periods} />}>
      {changes.length === 0 ? (
        <div className="change-line tone-delivered">
          <IconCheck size={16} stroke={2} aria-hidden />
          <span>No significant change.</span>
        </div>
      ) : (
        <ul className="plain">
          {shownChanges.map(({ code, key, judgement, text }) => {
            const [tone, Icon] = JUDGEMENT_STYLES[judgement];
            return (
              <li key={`${code} ${key}`} className={`change-line tone-${tone}`}>
                <Icon size={16} stroke={2} aria-hidden />
                <span className="wrap">
                  <span className="unseen">{JUDGEMENT_WORDS[judgement]}</span>
                  {text}{' '}
                  {key === null ? null : (
                    <Anchor component="button" type="button" inherit onClick={() => onSelect(key)}>
                      Show in the chart
                    </Anchor>
                  )}
                </span>
              </li>
            );
          })}
        </ul>
      )}
      {hiddenCount > 0 ? (
        <Anchor component="button" type="button" size="sm" mt={6} onClick={() => setShowAll(true)}>
          Show {formatCount(hiddenCount, 'more change')}
        </Anchor>
      ) : null}
    </Card>
  );
}
