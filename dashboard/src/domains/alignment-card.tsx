/** Shows whether messages of the domain pass DMARC, with the found and the expected value of DKIM, SPF and DMARC. */
import type { DomainAlignment } from '../../../src/operations/domain-details.ts';
import { Card } from '../parts/card';

const METHOD_NAMES: Readonly<Record<DomainAlignment['method'], string>> = { dkim: 'DKIM', spf: 'SPF', dmarc: 'DMARC' };
/** The CSS class of the dot, and the word that replaces its color for screen readers. */
const STATE_STYLES: Readonly<Record<DomainAlignment['state'], readonly [level: string, word: string]>> = {
  pass: ['ok', 'pass'],
  warning: ['warning', 'pass with a warning'],
  fail: ['failure', 'fail'],
  unknown: ['', 'unknown'],
  'not-needed': ['', 'not needed'],
};

export function AlignmentCard({ alignment }: { readonly alignment: readonly DomainAlignment[] }) {
  return (
    <Card title="Alignment">
      {alignment.map(({ method, state, found, expected }) => (
        <div key={method} className="alignment">
          <div className="health-row">
            <i className={`level-dot ${STATE_STYLES[state][0]}`} />
            <span>
              {METHOD_NAMES[method]}
              <span className="unseen">: {STATE_STYLES[state][1]}</span>
            </span>
            <span>{found}</span>
          </div>
          <div className="alignment-expected">expected: {expected}</div>
        </div>
      ))}
    </Card>
  );
}
