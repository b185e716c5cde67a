/** The effective settings of this node with their sources. Secrets are masked. The page cannot change settings. */
import { Code, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { EffectiveSettings } from '../../../src/operations/installation.ts';
import { get } from '../api/client';
import { useUrlState } from '../api/url-state';
import { FilterBox } from '../parts/filter-box';
import { ListHead } from '../parts/list-row';
import { formatCount } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { StatusBadge } from '../parts/status-badge';
import { TextWithCode } from '../parts/text-with-code';

type Setting = EffectiveSettings[number];

const SOURCE_LABELS: Readonly<Record<Setting['source'], string>> = {
  default: 'default',
  '.env': '.env file',
  environment: 'environment',
  file: 'secret file',
};

export function SettingsPage() {
  // Settings change only with a restart of the service.
  const settings = useQuery({ queryKey: ['settings'], queryFn: () => get<EffectiveSettings>('/config') });
  const [urlState, setUrlState] = useUrlState();
  const filterText = urlState.get('q') ?? '';
  const showsAll = urlState.get('settings') !== 'set';
  const searchText = filterText.trim().toLowerCase();
  const allSettings = settings.data ?? [];
  const shownSettings = allSettings.filter(
    ({ name, value, source, meaning }) =>
      (showsAll || source !== 'default') &&
      [name, value ?? '', meaning].some((member) => member.toLowerCase().includes(searchText)),
  );
  return (
    <>
      <PageHead title="Settings" />
      <p className="page-intro">
        The effective settings of this node. To change a setting, change the environment or the file <Code>.env</Code>{' '}
        and restart the service. <Code>postrider config</Code> prints the same settings.
      </p>
      {settings.isPending ? <Loading /> : null}
      {settings.isError ? <ErrorAlert error={settings.error} retry={settings.refetch} /> : null}
      {settings.data === undefined ? null : (
        <>
          <search className="filters" aria-label="Filters">
            <FilterBox
              label="Filter by name, value or meaning"
              value={filterText}
              onChange={(q) => setUrlState({ q }, true)}
              isInline
            />
            <Switch
              size="xs"
              label="Only changed settings"
              checked={!showsAll}
              onChange={(event) => setUrlState({ settings: event.currentTarget.checked ? 'set' : null }, true)}
            />
            <span className="filter-count" role="status">
              {shownSettings.length === allSettings.length
                ? formatCount(allSettings.length, 'setting')
                : `${shownSettings.length} of ${formatCount(allSettings.length, 'setting')}`}
            </span>
          </search>
          {shownSettings.length === 0 ? (
            <EmptyState title="No setting matches" />
          ) : (
            <SettingTable settings={shownSettings} />
          )}
        </>
      )}
    </>
  );
}

function SettingTable({ settings }: { readonly settings: readonly Setting[] }) {
  return (
    <div className="card flush">
      <table className="list settings">
        <caption className="unseen">Effective settings</caption>
        <ListHead columns={['Setting', 'Value', 'Source']} />
        <tbody>
          {settings.map(({ name, value, source, meaning }) => (
            <tr key={name}>
              <td className="fill">
                <div className="two-lines">
                  <code>{name}</code>
                  <span>
                    <TextWithCode text={meaning} />
                  </span>
                </div>
              </td>
              <td className="fill">
                {value === null ? <span className="muted">none</span> : <code className="inline-code">{value}</code>}
              </td>
              <td>
                <StatusBadge tone={source === 'default' ? 'neutral' : 'info'}>{SOURCE_LABELS[source]}</StatusBadge>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
