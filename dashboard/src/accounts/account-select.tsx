/** Chooses an account by typing part of its name; for suppression lists also `*`, the list of the whole service. */
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
  // One that the address names and that is gone: what is asked of it says so.
  const known = value === null || data.some((one) => one.value === value);
  return (
    <Select
      label={label}
      data={known ? data : [...data, { value, label: value }]}
      value={value}
      onChange={(name) => {
        if (name !== null) onChange(name);
      }}
      searchable
      allowDeselect={false}
      required={required}
      limit={50}
      nothingFoundMessage="No such account"
      {...(accounts.isError ? { error: accounts.error.message } : {})}
    />
  );
}
