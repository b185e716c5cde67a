/**
 * Selects an account by a part of its name. With `service`, also offers `*`, the suppression list of the whole service.
 */
import { Select } from '@mantine/core';
import { useAccounts } from './queries';

interface AccountSelectProps {
  readonly label: string;
  readonly value: string | null;
  readonly service?: boolean;
  readonly required?: boolean;
  readonly onChange: (name: string) => void;
}

export function AccountSelect({ label, value, service = false, required = false, onChange }: AccountSelectProps) {
  const accounts = useAccounts();
  const names = (accounts.data ?? []).map(({ name }) => ({ value: name, label: name }));
  const data = service ? [{ value: '*', label: '* (the whole service)' }, ...names] : names;
  // The account in the URL may no longer exist. Its name is shown, and a request for this account returns an error.
  const isListed = value === null || data.some((account) => account.value === value);
  return (
    <Select
      label={label}
      data={isListed ? data : [...data, { value, label: value }]}
      value={value}
      onChange={(name) => {
        if (name !== null) onChange(name);
      }}
      searchable
      allowDeselect={false}
      required={required}
      limit={50}
      nothingFoundMessage="No account has this name"
      {...(accounts.isError ? { error: accounts.error.message } : {})}
    />
  );
}
